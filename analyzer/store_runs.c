#include "analyzer/store_runs.h"

/* ---- writing ---- */

static void end_run(struct store_runs *r)
{
    if (r->count == 0)
        return;
    buf_printf(&r->text, r->count > 1 ? "%s%zux%zu" : "%s%zu", r->text.size ? " " : "", r->distance, r->count);
    r->count = 0;
}

void store_runs_add(struct store_runs *r, size_t number)
{
    size_t distance = number - r->last;
    if (r->count && distance != r->distance)
        end_run(r);
    r->distance = distance;
    r->last = number;
    r->count++;
}

const char *store_runs_text(struct store_runs *r)
{
    end_run(r);
    if (r->text.failed)
        return NULL;
    return r->text.data ? r->text.data : "";
}

void store_runs_free(struct store_runs *r)
{
    buf_free(&r->text);
    *r = (struct store_runs){0};
}

/* ---- reading ---- */

bool store_runs_start(struct store_runs_reader *r, const char *text, size_t most)
{
    *r = (struct store_runs_reader){.at = text, .most = most};
    return *text != '\0';
}

/* A number from 1, of at most 18 digits. */
static bool read_number(struct store_runs_reader *r, size_t *out)
{
    size_t digits = 0;
    *out = 0;
    for (; *r->at >= '0' && *r->at <= '9' && digits < 18; digits++)
        *out = *out * 10 + (size_t)(*r->at++ - '0');
    return digits && *out && !(*r->at >= '0' && *r->at <= '9');
}

static bool read_run(struct store_runs_reader *r)
{
    if (*r->at == '\0')
        return false;
    r->bad = true;
    if (r->last && *r->at++ != ' ')
        return false;
    if (!read_number(r, &r->distance))
        return false;
    r->left = 1;
    if (*r->at == 'x') {
        r->at++;
        if (!read_number(r, &r->left))
            return false;
    }
    r->bad = false;
    return true;
}

bool store_runs_next(struct store_runs_reader *r, size_t *out)
{
    if (r->bad || (r->left == 0 && !read_run(r)))
        return false;
    if (r->distance > r->most - r->last) {
        r->bad = true;
        return false;
    }
    r->left--;
    r->last += r->distance;
    *out = r->last;
    return true;
}
