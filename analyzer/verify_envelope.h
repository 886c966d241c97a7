/* verify_envelope.h - how far rounding may move each element that a launch stores, and whether the device's differences
 * stay inside. docs/verify.md, "The envelope". */
#ifndef ANALYZER_VERIFY_ENVELOPE_H
#define ANALYZER_VERIFY_ENVELOPE_H

#include "analyzer/verify.h"
#include "analyzer/verify_compare.h"

/* What is said of a word that differs. */
enum envelope_word {
    ENVELOPE_OPEN,   /* nothing: the bound is too wide, a near decision, or between the two below */
    ENVELOPE_WITHIN, /* a sound device may store it */
    ENVELOPE_BEYOND, /* no sound device stores it */
    ENVELOPE_TIMED,  /* it depends on clocks, on the place in the device, or on the order of atomics */
    ENVELOPE_WORDS
};
struct envelope {
    uint8_t *words; /* owned; enum envelope_word of each word of the comparison */
    float *scales;  /* owned; how many scales each word is off, 0 for integers */
    uint64_t counts[ENVELOPE_WORDS];
    uint64_t near_threads; /* threads that may go another way elsewhere, and leave other words unwritten or written */
    bool suspicious;       /* single elements are within, but all together they are too far off for rounding */
};

/* Runs the launch once with shadows and several times rounding by chance (`orders`: each time in another order, too).
 * `memory` is as the run left it that `words` were compared with. False: that cannot be done, *out is empty. */
bool verify_envelope(struct verify *v, const struct model_launch *launch, const struct reference_launch *like,
                     const struct verify_memory *memory, const struct comparison *words, bool orders,
                     struct envelope *out);
void envelope_free(struct envelope *envelope);

/* For whoever compares by itself. Removes the words that the launch did not store to and another stream may have. */
void verify_outputs_drop_concurrent(const struct verify *v, const struct model_launch *launch,
                                    const struct verify_memory *memory, struct comparison *words);
/* What is certain becomes differences of *j, one per region; returns how many words that is. `envelope`: NULL, or what
 * is said of each word. */
uint64_t verify_outputs_take(const struct verify *v, const struct model_launch *launch,
                             const struct verify_memory *memory, unsigned traits, const struct envelope *envelope,
                             const struct comparison *words, struct judgement *j);

#endif
