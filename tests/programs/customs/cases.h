/* cases.h - a program of many small cases: `PROGRAM [CASE...]` runs those, or all, and prints a
 * line for each. */
#ifndef CASES_H
#define CASES_H
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess) {                                                               \
            printf("%s:%d: %s\n", strrchr("/" __FILE__, '/') + 1, __LINE__,                        \
                   cudaGetErrorString(error_));                                                    \
            exit(2);                                                                               \
        }                                                                                          \
    } while (0)

#define DONE()                                                                                     \
    do {                                                                                           \
        CHECK(cudaGetLastError());                                                                 \
        CHECK(cudaDeviceSynchronize());                                                            \
    } while (0)

struct test_case {
    const char *name;
    long (*run)(void);
    long expected;
};

static bool asked_for(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return argc == 1;
}

template <int N> static int run_cases(const test_case (&cases)[N], int argc, char **argv)
{
    int wrong = 0;
    for (int i = 0; i < N; i++)
        if (asked_for(cases[i].name, argc, argv)) {
            long got = cases[i].run();
            printf("%s %ld%s\n", cases[i].name, got, got == cases[i].expected ? "" : " is wrong");
            wrong += got != cases[i].expected;
        }
    return wrong ? 1 : 0;
}
#endif
