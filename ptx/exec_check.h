/* exec_check.h - what the checked loop adds to an instruction. */
#ifndef PTX_EXEC_CHECK_H
#define PTX_EXEC_CHECK_H

#include "ptx/exec.h"

#define CHECK1_USE (void)0
#define CHECK1_MOVE (void)0
#define CHECK1_PART (void)0
#define CHECK2_USE (void)0
#define CHECK2_PART (void)0
#define CHECK2_ADDR (void)0
#define CHECK3_USE (void)0
#define CHECK3_PART (void)0
#define CHECK3_ADDR (void)0
#define CHECK3_SEL (void)0
#define CHECK_ALL (void)0
#define CHECK_CARRY (void)0
#define CHECK_CLEAR (void)0
#define CHECK_CONDITION (void)0

uint8_t *check_access(struct worker *w, struct block *b, struct thread *t, const struct insn *in, const struct shadow *base,
                      enum mem_space space, uint64_t address, uint32_t bytes, bool write);
uint8_t *check_atomic(struct worker *w, struct block *b, struct thread *t, const struct insn *in, struct shadow *S,
                      enum mem_space space, uint64_t address, uint32_t bytes);
void check_loaded(struct worker *w, struct block *b, struct thread *t, const struct insn *in, struct shadow *d,
                  enum mem_space space, uint64_t address, uint32_t bytes, const uint8_t *p, uint64_t value);
void check_stored(struct worker *w, struct block *b, struct thread *t, const struct insn *in, const struct shadow *s,
                  enum mem_space space, uint64_t address, uint32_t bytes, const uint8_t *p, uint64_t value);
void check_copied(struct worker *w, struct block *b, struct thread *t, const struct insn *in, uint64_t to, uint64_t from,
                  uint32_t bytes, uint32_t given, const uint8_t *p);
void check_fence(struct block *b, struct thread *t);

#endif
