# Pairs of programs, each built twice from one source: NAME_wrong with one planted fault, NAME_right without (see README.md).
PAIR_NAMES := $(patsubst tests/programs/pairs/%.cu,%,$(sort $(wildcard tests/programs/pairs/*.cu)))
PAIRS_WRONG := $(PAIR_NAMES:%=$(B)/programs/pairs/%_wrong)
PAIRS_RIGHT := $(PAIR_NAMES:%=$(B)/programs/pairs/%_right)
PAIRS += $(PAIRS_WRONG) $(PAIRS_RIGHT)

$(PAIRS): tests/programs/must.h
PAIR_NVCCFLAGS = -O2 -g -lineinfo -cudart shared

$(PAIRS_WRONG): $(B)/programs/pairs/%_wrong: tests/programs/pairs/%.cu
	@mkdir -p $(@D)
	$(call say,NVCC,$@) $(NVCC) $(PAIR_NVCCFLAGS) -DWRONG -o $@ $<

$(PAIRS_RIGHT): $(B)/programs/pairs/%_right: tests/programs/pairs/%.cu
	@mkdir -p $(@D)
	$(call say,NVCC,$@) $(NVCC) $(PAIR_NVCCFLAGS) -o $@ $<

.PHONY: pairs
pairs: $(PAIRS) ## build the pairs of wrong and right kernels (needs nvcc)
