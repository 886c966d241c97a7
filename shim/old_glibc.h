/* old_glibc.h - lets the library load on glibc 2.28 and later, wherever it was built. Included before every file of the
 * shim.
 *
 * glibc 2.34 moved libpthread and libdl into libc and gave their functions a new version, so that a library linked
 * there does not load in older containers. The old versions still exist. Weak, since a program without threads (every
 * child of the watched one loads us too) has no libpthread there: the functions are called only in programs that use
 * CUDA, which always have it.
 */
#ifndef SHIM_OLD_GLIBC_H
#define SHIM_OLD_GLIBC_H

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define OLD_GLIBC(name, version) __asm__(".symver " #name ", " #name "@" version "\n.weak " #name)
OLD_GLIBC(dlopen, "GLIBC_2.2.5");
OLD_GLIBC(dlclose, "GLIBC_2.2.5");
OLD_GLIBC(dladdr1, "GLIBC_2.3.3");
OLD_GLIBC(pthread_create, "GLIBC_2.2.5");
OLD_GLIBC(pthread_getattr_np, "GLIBC_2.2.5");
OLD_GLIBC(pthread_attr_getstack, "GLIBC_2.2.5");
OLD_GLIBC(pthread_attr_getstacksize, "GLIBC_2.2.5");
OLD_GLIBC(pthread_attr_setstacksize, "GLIBC_2.2.5");
OLD_GLIBC(pthread_key_create, "GLIBC_2.2.5");
OLD_GLIBC(pthread_setspecific, "GLIBC_2.2.5");
OLD_GLIBC(pthread_mutex_trylock, "GLIBC_2.2.5");
OLD_GLIBC(pthread_condattr_setclock, "GLIBC_2.3.3");
OLD_GLIBC(pthread_sigmask, "GLIBC_2.2.5");
#undef OLD_GLIBC
#endif

#endif
