# libopsdebug.so: the shim. Its only NEEDED is libc (a test looks); zstd and xxhash are linked in, hidden.
SHIM_SOURCES = $(wildcard shim/*.c) common/map.c common/hash.c common/fatbin.c common/buf.c
SHIM_OBJECTS = $(patsubst %.c,$(B)/obj/%.o,$(SHIM_SOURCES))
SHIM = $(B)/libopsdebug.so
TARGETS += $(SHIM)

# What is generated lies in $(B)/gen/shim and is included as shim/NAME.
SHIM_GENERATED = $(B)/gen/shim/cuda_names.inc $(B)/gen/shim/check_ptx.inc
# Preloaded, so static TLS is there: no call of __tls_get_addr, which would also make the loader a NEEDED.
$(B)/obj/shim/%.o: EXTRA_CFLAGS += -I$(B)/gen -ftls-model=initial-exec
$(B)/obj/shim/doors.o $(B)/obj/shim/device_work.o: $(SHIM_GENERATED)

# The names that cuGetProcAddress knows: everything the header declares.
$(B)/gen/shim/cuda_names.inc: $(CUDA_HOME)/include/cuda.h
	@mkdir -p $(@D)
	$(call say,GEN,$@) grep -oE '\bcu[A-Z][A-Za-z0-9]*(_v[0-9]+)?\(' $< | tr -d '(' | LC_ALL=C sort -u | sed 's/.*/"&",/' >$@

$(B)/gen/shim/check_ptx.inc: shim/check.ptx
	@mkdir -p $(@D)
	$(call say,GEN,$@) od -An -v -tx1 $< | sed 's/ \(..\)/0x\1,/g' | sed '$$s/,$$//' >$@

# -z defs: a row of hooks.def without a wrapper fails here. -Bsymbolic: our own table means our own wrappers.
$(SHIM): $(SHIM_OBJECTS) shim/libopsdebug.map
	@mkdir -p $(@D)
	$(call say,LD,$@) $(CC) $(SAN) -shared -o $@ $(SHIM_OBJECTS) -Wl,--version-script=shim/libopsdebug.map -Wl,-soname,libopsdebug.so \
	  -Wl,-z,defs -Wl,-z,now -Wl,-z,relro -Wl,-Bsymbolic -Wl,--exclude-libs,ALL -Wl,--gc-sections -l:libzstd.a -l:liblz4.a

# A driver that succeeds at once, for tests and the bench. -Bsymbolic: its own calls are its own.
STUB = $(B)/stub/libcuda.so.1
$(STUB): $(B)/obj/tests/stub/stub_driver.o
	@mkdir -p $(@D)
	$(call say,LD,$@) $(CC) $(SAN) -shared -o $@ $^ -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic
