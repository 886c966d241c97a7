# The PTX reader and executor.
PTX_SOURCES = $(sort $(wildcard ptx/*.c))
$(eval $(call archive,libopsptx,$(PTX_SOURCES) common/map.c common/buf.c))
PTX = $(B)/lib/libopsptx.a
# Nobody reads errno or exception flags: without them sqrt is one instruction and a choice needs no branch. No result changes.
$(B)/obj/ptx/%.o: EXTRA_CFLAGS += -fno-math-errno -fno-trapping-math
# For others: one object in which only the names of opsptx.h are seen from outside.
TARGETS += $(B)/libopsptx.a
$(B)/libopsptx.a: $(PTX)
	$(call say,AR,$@) $(CC) -r -nostdlib -o $(B)/obj/opsptx.o -Wl,--whole-archive $< -Wl,--no-whole-archive && \
	  objcopy -g -w --keep-global-symbol='ptx_*' $(B)/obj/opsptx.o && rm -f $@ && ar rcs $@ $(B)/obj/opsptx.o

PTX_KIT = $(B)/obj/tests/unit/ptx_kit.o $(B)/obj/tests/unit/ptx_kit_shadow.o
$(eval $(call unit_test,ptx_integer,$(PTX_KIT) $(PTX)))
$(eval $(call unit_test,ptx_float,$(PTX_KIT) $(PTX),-lmpfr -lgmp))
$(eval $(call unit_test,ptx_async,$(PTX_KIT) $(PTX)))
$(eval $(call unit_test,ptx_memory,$(PTX_KIT) $(PTX)))
$(eval $(call unit_test,ptx_fold,$(PTX_KIT) $(PTX)))
$(eval $(call unit_test,ptx_fold_random,$(PTX_KIT) $(PTX)))
$(eval $(call unit_test,ptx_stack,$(PTX_KIT) $(PTX),-lpthread))
$(eval $(call unit_test,ptx_blocks,$(PTX_KIT) $(PTX)))
$(eval $(call unit_test,ptx_matrix_small,$(PTX_KIT) $(PTX)))
$(eval $(call unit_test,ptx_matrix_fast,$(PTX_KIT) $(PTX)))
$(eval $(call unit_test,ptx_video,$(PTX_KIT) $(PTX)))
$(eval $(call unit_test,ptx_packed,$(PTX_KIT) $(PTX)))
$(eval $(call unit_test,ptx_rows,$(B)/obj/tests/unit/ptx_oracle_integer.o $(B)/obj/tests/unit/ptx_oracle_float.o $(PTX_KIT) $(PTX),-lmpfr -lgmp))
$(eval $(call unit_test,ptx_approx,,-lmpfr -lgmp))
$(eval $(call unit_test,ptx_variant,$(PTX_KIT) $(PTX)))
$(eval $(call unit_test,ptx_heap,$(PTX_KIT) $(PTX)))
$(eval $(call unit_test,ptx_runtime,$(PTX_KIT) $(PTX)))
$(eval $(call unit_test,ptx_link,$(PTX_KIT) $(PTX)))
$(eval $(call unit_test,ptx_check,$(PTX_KIT) $(PTX)))
PTX_SHADOW_KIT = $(PTX_KIT) $(B)/obj/tests/unit/ptx_shadow_kit.o
$(eval $(call unit_test,ptx_shadow,$(PTX_SHADOW_KIT) $(PTX)))
$(eval $(call unit_test,ptx_shadow_values,$(PTX_SHADOW_KIT) $(PTX)))
$(eval $(call unit_test,ptx_shadow_flags,$(PTX_SHADOW_KIT) $(PTX)))
$(eval $(call unit_test,ptx_shadow_double,$(PTX_SHADOW_KIT) $(PTX),-lmpfr -lgmp))
$(eval $(call unit_test,ptx_lanes,$(B)/obj/tests/unit/ptx_random.o $(PTX_KIT) $(PTX)))
$(eval $(call unit_test,ptx_lanes_shadow,$(B)/obj/tests/unit/ptx_random.o $(PTX_KIT) $(PTX)))
$(eval $(call unit_test,ptx_lanes_entries,$(PTX_KIT) $(PTX)))
$(eval $(call unit_test,ptx_counts,$(B)/obj/tests/unit/ptx_pattern.o $(B)/obj/tests/unit/ptx_random.o $(PTX_KIT) $(PTX)))
$(eval $(call unit_test,ptx_guard,$(B)/obj/tests/unit/ptx_defects.o $(PTX_KIT) $(PTX)))
$(eval $(call unit_test,ptx_rounding,$(PTX_KIT) $(PTX),-lmpfr -lgmp))

BENCHES += $(B)/bench/bench_ptx
BASELINES = $(B)/obj/bench/ptx_scalar.o $(B)/obj/bench/ptx_vector.o
$(BASELINES): EXTRA_CFLAGS += -O3 -march=native
$(B)/obj/bench/ptx_scalar.o: EXTRA_CFLAGS += -fno-tree-vectorize
$(B)/bench/bench_ptx: $(B)/obj/bench/bench_ptx.o $(BASELINES) $(PTX)
	@mkdir -p $(@D)
	$(call say,LD,$@) $(CC) $(SAN) -o $@ $^ -lm -lpthread
# The flags of the executor's own objects: what is measured is what runs.
$(B)/obj/bench/bench_arith.o: EXTRA_CFLAGS += -fno-math-errno -fno-trapping-math
BENCHES += $(B)/bench/bench_arith
$(B)/bench/bench_arith: $(B)/obj/bench/bench_arith.o $(PTX)
	@mkdir -p $(@D)
	$(call say,LD,$@) $(CC) $(SAN) -o $@ $^ -lm -lpthread
$(eval $(call unit_test,ptx_control,$(PTX_KIT) $(PTX)))
$(eval $(call unit_test,ptx_matrix,$(PTX_KIT) $(PTX)))
$(eval $(call unit_test,ptx_matrix_kernels,$(PTX_KIT) $(PTX)))
$(eval $(call unit_test,ptx_reader,$(PTX_KIT) $(PTX)))
$(eval $(call unit_test,ptx_texture,$(PTX_KIT) $(PTX)))
$(eval $(call unit_test,ptx_surface,$(PTX_KIT) $(PTX)))
$(eval $(call unit_test,ptx_texture_kernels,$(PTX_KIT) $(PTX)))

$(eval $(call fuzz_target,ptx,$(PTX_SOURCES) tests/fuzz/ptx_mutate.c common/map.c common/buf.c))
