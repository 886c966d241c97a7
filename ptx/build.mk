# The PTX reader and executor.
PTX_SOURCES = $(sort $(wildcard ptx/*.c))
$(eval $(call archive,libopsptx,$(PTX_SOURCES) common/map.c common/buf.c))
PTX = $(B)/lib/libopsptx.a
