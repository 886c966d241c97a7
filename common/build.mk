# What both sides need: buffers, maps, hashes, the fat binary reader.
COMMON_SOURCES = common/diag.c common/buf.c common/map.c common/hash.c common/fatbin.c
$(eval $(call archive,libcommon,$(COMMON_SOURCES)))
COMMON = $(B)/lib/libcommon.a
COMMON_LIBS = -l:libzstd.a -l:liblz4.a

$(eval $(call unit_test,fatbin,$(COMMON),$(COMMON_LIBS)))
$(eval $(call unit_test,map,$(COMMON)))
$(eval $(call fuzz_target,fatbin,common/fatbin.c common/buf.c,$(COMMON_LIBS)))
