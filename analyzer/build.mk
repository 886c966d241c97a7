# The analyzer: reads captures, says what they mean. Everything but main.c is a library, so that tests link it.
# What needs no executor comes first: the fuzz target is made of it alone.
ANALYZER_READ_SOURCES = analyzer/regular.c analyzer/capture_read.c analyzer/capture_check.c analyzer/capture_check_scopes.c analyzer/capture_blob.c analyzer/capture_thread.c \
	analyzer/model_scopes.c analyzer/operator.c analyzer/operator_text.c analyzer/marks.c analyzer/slabs.c analyzer/classify_marks.c analyzer/model_build.c analyzer/model_graph.c analyzer/model_live.c analyzer/address_list.c analyzer/model_times.c analyzer/name.c analyzer/symbol.c analyzer/tail_call.c \
	analyzer/judgement.c analyzer/judgements.c analyzer/store.c analyzer/store_check.c analyzer/store_runs.c analyzer/store_touch.c analyzer/finding.c analyzer/classify.c analyzer/classify_faults.c analyzer/fault_pointer.c \
	analyzer/classify_damage.c analyzer/classify_errors.c analyzer/classify_frees.c analyzer/classify_guard.c analyzer/classify_held.c analyzer/classify_copies.c analyzer/classify_differences.c analyzer/classify_numbers.c analyzer/classify_order.c analyzer/classify_leaks.c analyzer/host_pointer.c analyzer/order.c analyzer/order_clock.c analyzer/place.c \
	analyzer/session.c analyzer/coverage.c analyzer/budget.c analyzer/hints.c analyzer/health_seen.c analyzer/element.c analyzer/bound.c analyzer/kernel_table.c analyzer/pattern.c analyzer/text.c analyzer/report_launch.c \
	analyzer/report_text.c analyzer/report_json.c analyzer/report_operators.c
ANALYZER_SOURCES = $(ANALYZER_READ_SOURCES) analyzer/selection.c analyzer/options.c analyzer/commands.c analyzer/cmd_help.c \
	analyzer/cmd_report.c analyzer/cmd_list.c analyzer/cmd_show.c analyzer/cmd_verify.c analyzer/cmd_attribute.c analyzer/cmd_export.c analyzer/cmd_trace.c \
	analyzer/verify.c analyzer/verify_judge.c analyzer/verify_waits.c analyzer/verify_memory.c analyzer/verify_compare.c analyzer/verify_faults.c analyzer/verify_outputs.c analyzer/verify_envelope.c analyzer/verify_overlap.c analyzer/verify_numbers.c analyzer/verify_counts.c analyzer/line_counts.c analyzer/shadow_run.c analyzer/rerun.c analyzer/rerun_stores.c analyzer/attribute.c analyzer/npy.c analyzer/health.c analyzer/health_origin.c analyzer/verify_unwritten.c analyzer/verify_garbage.c analyzer/verify_private.c analyzer/verify_concurrent.c analyzer/verify_touch.c analyzer/verify_operators.c \
	analyzer/valid_bytes.c analyzer/blob_cache.c analyzer/cmd_counts.c analyzer/cmd_hang.c analyzer/hang.c analyzer/hang_judge.c analyzer/process.c analyzer/cmd_ptx.c analyzer/device_code.c
# Launches of graphs, node by node.
ANALYZER_SOURCES += analyzer/verify_graph.c analyzer/verify_graph_race.c analyzer/verify_graph_outputs.c analyzer/graph_contents.c
$(eval $(call archive,libanalyzer,$(ANALYZER_SOURCES)))

ANALYZER_LIBS = -lcjson -ldw -lelf -liberty -l:libzstd.a -l:liblz4.a
ANALYZER = $(B)/lib/libanalyzer.a $(REFERENCE) $(COMMON)

# The launcher has it check options by the shim's own parser.
CHECK_OPTIONS = $(B)/obj/analyzer/check_options.o $(B)/obj/shim/options.o $(B)/obj/shim/guard_choice.o
$(B)/ops-analyze: $(B)/obj/analyzer/main.o $(CHECK_OPTIONS) $(ANALYZER)
	@mkdir -p $(@D)
	$(call say,LD,$@) $(CC) $(SAN) -o $@ $^ $(ANALYZER_LIBS) -lm -lpthread
TARGETS += $(B)/ops-analyze

CAPTURE_MAKE = $(B)/obj/tests/unit/capture_make.o
$(eval $(call unit_test,capture_read,$(CAPTURE_MAKE) $(ANALYZER),$(ANALYZER_LIBS)))
$(eval $(call fuzz_target,capture,$(ANALYZER_READ_SOURCES) analyzer/hang.c analyzer/hang_judge.c analyzer/process.c $(COMMON_SOURCES),$(ANALYZER_LIBS)))
$(eval $(call unit_test,analyzer_verify,$(CAPTURE_MAKE) $(ANALYZER),$(ANALYZER_LIBS)))
$(eval $(call unit_test,analyzer_unwritten,$(CAPTURE_MAKE) $(ANALYZER),$(ANALYZER_LIBS)))
$(eval $(call unit_test,analyzer_hostile,$(CAPTURE_MAKE) $(ANALYZER),$(ANALYZER_LIBS)))
$(eval $(call unit_test,analyzer_waits,$(CAPTURE_MAKE) $(ANALYZER),$(ANALYZER_LIBS)))
$(eval $(call unit_test,analyzer_store,$(CAPTURE_MAKE) $(ANALYZER),$(ANALYZER_LIBS)))
$(eval $(call unit_test,analyzer_envelope,$(CAPTURE_MAKE) $(ANALYZER),$(ANALYZER_LIBS)))
$(eval $(call unit_test,analyzer_graph,$(CAPTURE_MAKE) $(ANALYZER),$(ANALYZER_LIBS)))
$(eval $(call unit_test,analyzer_model,$(CAPTURE_MAKE) $(ANALYZER),$(ANALYZER_LIBS)))
$(eval $(call unit_test,analyzer_scopes,$(CAPTURE_MAKE) $(ANALYZER),$(ANALYZER_LIBS)))
$(eval $(call unit_test,analyzer_numbers,$(CAPTURE_MAKE) $(ANALYZER),$(ANALYZER_LIBS)))
$(eval $(call unit_test,analyzer_counts,$(CAPTURE_MAKE) $(ANALYZER),$(ANALYZER_LIBS)))
$(eval $(call unit_test,analyzer_order,$(CAPTURE_MAKE) $(ANALYZER),$(ANALYZER_LIBS)))
$(eval $(call unit_test,analyzer_findings,$(CAPTURE_MAKE) $(ANALYZER),$(ANALYZER_LIBS)))
$(eval $(call unit_test,analyzer_hang,$(CAPTURE_MAKE) $(ANALYZER),$(ANALYZER_LIBS)))
$(eval $(call unit_test,analyzer_options,$(CAPTURE_MAKE) $(ANALYZER),$(ANALYZER_LIBS)))
$(eval $(call unit_test,analyzer_symbol,$(CAPTURE_MAKE) $(ANALYZER),$(ANALYZER_LIBS)))
# Tail calls, whatever the level of optimisation.
$(B)/obj/tests/unit/test_analyzer_symbol.o: EXTRA_CFLAGS += -foptimize-sibling-calls
$(eval $(call fuzz_target,store,$(ANALYZER_READ_SOURCES) $(COMMON_SOURCES) tests/unit/capture_make.c,$(ANALYZER_LIBS)))
# All of verify. The target brings contents of its own in place of capture_blob.c. The executor has a target of its own and takes minutes to
# compile: here it comes as it is, or, with FUZZ_EXECUTOR=1, instrumented, too.
VERIFY_FUZZ_SOURCES = $(filter-out analyzer/cmd_%.c analyzer/commands.c analyzer/options.c analyzer/capture_blob.c,$(ANALYZER_SOURCES)) $(REFERENCE_SOURCES) $(COMMON_SOURCES)
$(eval $(call fuzz_target,verify,$(VERIFY_FUZZ_SOURCES) tests/fuzz/verify_mutate.c $(if $(FUZZ_EXECUTOR),$(PTX_SOURCES),$(PTX)),$(if $(FUZZ_EXECUTOR),,$(PTX)) $(ANALYZER_LIBS)))
