# Programs that are made as those were whose users saw a tool like this one break them: docs/breakages.md.
BREAKAGES_CUDA := $(addprefix $(B)/programs/breakages/,arguments capture cxx rendezvous ipc small_stack)
BREAKAGES_DRIVER := $(addprefix $(B)/programs/breakages/,contexts attributes signals churn children ends wide resolve killed order held)
BREAKAGES_DRIVER += $(addprefix $(B)/programs/breakages/,pools primary cancelled wild elsewhere pool_ipc refused capture_beside names)
BREAKAGES_PLUGINS := $(addprefix $(B)/programs/breakages/,first.so second.so)
PROGRAMS += $(BREAKAGES_CUDA) $(BREAKAGES_DRIVER) $(BREAKAGES_PLUGINS) $(B)/programs/breakages/plugin_host

$(BREAKAGES_DRIVER): tests/programs/must.h
$(BREAKAGES_CUDA): $(B)/programs/breakages/%: tests/programs/breakages/%.cu
	@mkdir -p $(@D)
	$(call say,NVCC,$@) $(NVCC) -O2 -g -lineinfo -cudart shared -o $@ $<
$(BREAKAGES_DRIVER): $(B)/programs/breakages/%: tests/programs/breakages/%.c | $(B)/softgpu/libcuda.so.1
	@mkdir -p $(@D)
	$(call say,CC,$@) $(CC) $(PROGRAM_CFLAGS) -Wno-unused-parameter -D_GNU_SOURCE -I. -Iinclude -isystem $(CUDA_HOME)/include -o $@ $< -L$(B)/softgpu -Wl,--as-needed -lcuda -lpthread -ldl
$(BREAKAGES_PLUGINS): $(B)/programs/breakages/%.so: tests/programs/breakages/plugin.cu
	@mkdir -p $(@D)
	$(call say,NVCC,$@) $(NVCC) -O2 -g -lineinfo -cudart shared -shared -Xcompiler -fPIC -DNAME=$* -o $@ $<
$(B)/programs/breakages/plugin_host: tests/programs/breakages/plugin_host.c
	@mkdir -p $(@D)
	$(call say,CC,$@) $(CC) $(PROGRAM_CFLAGS) -o $@ $< -ldl
