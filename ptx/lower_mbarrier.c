/* lower_mbarrier.c - mbarrier, and the copies that arrive at one: cp.async.mbarrier, cp.async.bulk. Copies are done at
 * once, which is one of the moments at which a device may do them; so their arrival is at once, too. */
#include <string.h>
#include "ptx/exec_mbarrier.h"
#include "ptx/lower.h"

/* ---- words behind the opcode ---- */

static bool accept(const struct lower *l, uint32_t *at, const char *text)
{
    if (*at >= l->s->mod_count || strcmp(l->s->mods[*at]->text, text) != 0)
        return false;
    ++*at;
    return true;
}

__attribute__((noreturn)) static void refuse_words(struct lower *l)
{
    lower_refuse(l, "its words are not those of a form known here");
}

/* {.sem.scope}: `sem` or .relaxed, which differ only in what they promise. */
static void accept_order(struct lower *l, uint32_t *at, const char *sem)
{
    if (!accept(l, at, sem) && !accept(l, at, "relaxed"))
        return;
    if (!accept(l, at, "cta") && !accept(l, at, "cluster"))
        refuse_words(l);
}

static enum space accept_shared(const struct lower *l, uint32_t *at)
{
    return accept(l, at, "shared") || accept(l, at, "shared::cta") || accept(l, at, "shared::cluster") ? SPACE_SHARED
                                                                                                       : SPACE_NONE;
}

static void expect_type_and_end(struct lower *l, uint32_t at)
{
    if (!accept(l, &at, "b64") || at != l->s->mod_count)
        refuse_words(l);
}

static void need_operands(struct lower *l, uint32_t least, uint32_t most)
{
    if (l->s->operand_count < least || l->s->operand_count > most)
        lower_bad_operand(l, most, "no more and no fewer operands than the form has");
}

/* ---- mbarrier ---- */

static struct address object(struct lower *l, uint32_t operand, enum space space)
{
    struct address a = lower_address(l, operand_at(l, operand), space);
    if (a.space != MEM_SHARED && a.space != MEM_GENERIC)
        lower_refuse(l, "an mbarrier lies in .shared");
    return a;
}

static void emit_mbarrier(struct lower *l, unsigned op, const struct address *a, uint32_t d, uint32_t b, uint32_t c)
{
    emit(l, OP_MBARRIER, op | (unsigned)a->space << MBARRIER_SPACE_SHIFT, d, a->base, b, c)->imm = (uint64_t)a->offset;
    number_access(l);
}

/* arrive and arrive_drop: state, [address] {, count or transactions} */
static void lower_arrive(struct lower *l, uint32_t at, unsigned op)
{
    bool expects = accept(l, &at, "expect_tx"), stays = !expects && accept(l, &at, "noComplete");
    accept_order(l, &at, "release");
    enum space space = accept_shared(l, &at);
    expect_type_and_end(l, at);
    need_operands(l, expects || stays ? 3 : 2, 3);
    struct address a = object(l, 1, space);
    uint32_t given = operand_at(l, 2) ? source(l, 2, TYPE_U32) : constant(l, 1);
    emit_mbarrier(l, op, &a, destination(l, 0, TYPE_B64), expects ? constant(l, 1) : given,
                  expects ? given : constant(l, 0));
}

static void lower_wait(struct lower *l, uint32_t at, bool may_block)
{
    bool parity = accept(l, &at, "parity");
    accept_order(l, &at, "acquire");
    enum space space = accept_shared(l, &at);
    expect_type_and_end(l, at);
    need_operands(l, 3, may_block ? 4 : 3);
    struct address a = object(l, 1, space);
    uint32_t phase = source(l, 2, parity ? TYPE_U32 : TYPE_B64);
    if (operand_at(l, 3))
        (void)source(l, 3, TYPE_U32); /* how long it may take: here it looks once, and lets others run */
    emit_mbarrier(l, parity ? MBARRIER_TEST_PARITY : MBARRIER_TEST, &a, destination(l, 0, TYPE_PRED), phase,
                  constant(l, 0));
}

void lower_mbarrier(struct lower *l)
{
    uint32_t at = 0;
    if (accept(l, &at, "arrive") || accept(l, &at, "arrive_drop")) {
        lower_arrive(l, at, strcmp(l->s->mods[0]->text, "arrive") == 0 ? MBARRIER_ARRIVE : MBARRIER_DROP);
    } else if (accept(l, &at, "test_wait") || accept(l, &at, "try_wait")) {
        lower_wait(l, at, strcmp(l->s->mods[0]->text, "try_wait") == 0);
    } else if (accept(l, &at, "pending_count")) {
        expect_type_and_end(l, at);
        need_operands(l, 2, 2);
        uint32_t state = source(l, 1, TYPE_B64);
        emit(l, OP_AND, 0, destination(l, 0, TYPE_U32), state, constant(l, MBARRIER_PENDING_MASK), 0);
    } else {
        bool init = accept(l, &at, "init"), inval = !init && accept(l, &at, "inval");
        bool expect = !init && !inval && accept(l, &at, "expect_tx");
        if (!init && !inval && !expect && !accept(l, &at, "complete_tx"))
            refuse_words(l);
        if (!init && !inval)
            accept_order(l, &at, "relaxed");
        enum space space = accept_shared(l, &at);
        expect_type_and_end(l, at);
        need_operands(l, inval ? 1 : 2, inval ? 1 : 2);
        struct address a = object(l, 0, space);
        uint32_t count = inval ? constant(l, 0) : source(l, 1, TYPE_U32);
        unsigned op = init ? MBARRIER_INIT : inval ? MBARRIER_INVALIDATE : expect ? MBARRIER_EXPECT : MBARRIER_COMPLETE;
        emit_mbarrier(l, op, &a, temporary(l), count, constant(l, 0));
    }
}

/* ---- copies ---- */

/* Counts the thread's copies as arrived. Without .noinc one arrival was added for them before: nothing changes. */
void lower_cp_mbarrier(struct lower *l)
{
    uint32_t at = 2;
    if (!accept(l, &at, "arrive"))
        refuse_words(l);
    bool noinc = accept(l, &at, "noinc");
    enum space space = accept_shared(l, &at);
    expect_type_and_end(l, at);
    need_operands(l, 1, 1);
    struct address a = object(l, 0, space);
    emit_mbarrier(l, MBARRIER_ARRIVE, &a, temporary(l), constant(l, noinc), constant(l, 0));
}

static uint32_t absolute(struct lower *l, const struct address *a)
{
    uint32_t t = temporary(l);
    emit(l, OP_ADD_64, 0, t, a->base, constant(l, (uint64_t)a->offset), 0);
    return t;
}

/* cp.async.bulk between shared and global memory; what waits for it has nothing to wait for. */
void lower_cp_bulk(struct lower *l)
{
    uint32_t at = 2;
    if (accept(l, &at, "commit_group")) {
        need_operands(l, 0, 0);
    } else if (accept(l, &at, "wait_group")) {
        (void)accept(l, &at, "read");
        need_operands(l, 1, 1);
    } else if (accept(l, &at, "prefetch")) {
        if (!accept(l, &at, "L2") || !accept(l, &at, "global"))
            refuse_words(l);
        (void)accept(l, &at, "L2::cache_hint");
        need_operands(l, 2, 2);
    } else {
        bool out = accept(l, &at, "global");
        bool shared = accept_shared(l, &at) != SPACE_NONE;
        if (!shared || (!out && !accept(l, &at, "global")) ||
            !accept(l, &at, out ? "bulk_group" : "mbarrier::complete_tx::bytes"))
            refuse_words(l);
        (void)accept(l, &at, "L2::cache_hint");
        need_operands(l, out ? 3 : 4, out ? 3 : 4);
        struct address global = lower_address(l, operand_at(l, out ? 0 : 1), SPACE_GLOBAL),
                       local = lower_address(l, operand_at(l, out ? 1 : 0), SPACE_SHARED);
        uint32_t a = absolute(l, &local), b = absolute(l, &global), bytes = source(l, 2, TYPE_U32);
        emit(l, OP_CP_BULK, out ? BULK_TO_GLOBAL : 0, temporary(l), a, b, bytes);
        number_access(l);
        if (!out) {
            struct address m = object(l, 3, SPACE_SHARED);
            emit_mbarrier(l, MBARRIER_COMPLETE, &m, temporary(l), bytes, constant(l, 0));
        }
    }
    if (at != l->s->mod_count)
        refuse_words(l);
}
