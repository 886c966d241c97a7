# Work in several streams, with and without what orders it; copies that leave their buffers; memory that is never freed.
ORDER_NAMES := $(patsubst tests/programs/order/%.cu,%,$(sort $(wildcard tests/programs/order/*.cu)))
ORDER := $(ORDER_NAMES:%=$(B)/programs/order/%)
PROGRAMS += $(ORDER)

$(ORDER): tests/programs/must.h
$(ORDER): $(B)/programs/order/%: tests/programs/order/%.cu
	@mkdir -p $(@D)
	$(call say,NVCC,$@) $(NVCC) -O2 -g -lineinfo -cudart shared -o $@ $<
