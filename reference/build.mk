# The launch again, on the CPU. One strategy so far: the kernel's own PTX.
REFERENCE_SOURCES = reference/reference.c reference/reference_layout.c reference/reference_traits.c reference/reference_waits.c
$(eval $(call archive,libreference,$(REFERENCE_SOURCES)))
REFERENCE = $(B)/lib/libreference.a $(B)/lib/libopsptx.a

$(eval $(call unit_test,reference_run,$(REFERENCE) $(COMMON),-l:libzstd.a -l:liblz4.a))
