/* suggest.c - see suggest.h. Distance: insertions, deletions, replacements and swaps of
 * neighbours (optimal string alignment). */
#include "suggest.h"

#include <string.h>

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
    size_t rows[3][SUGGEST_MAX_BYTES + 1];
    size_t *before = rows[0], *last = rows[1], *now = rows[2];

    for (size_t j = 0; j <= b_size; j++)
        last[j] = j;
    for (size_t i = 1; i <= a_size; i++) {
        size_t *spare = before;

        now[0] = i;
        for (size_t j = 1; j <= b_size; j++) {
            now[j] = least(last[j], now[j - 1]) + 1;
            now[j] = least(now[j], last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], before[j - 2] + 1);
        }
        before = last;
        last = now;
        now = spare;
    }
    return last[b_size];
}

void suggest_init(struct suggest *suggest, const char *word, size_t size)
{
    *suggest = (struct suggest){ .word = word, .size = size };
    suggest->distance = size / 3 + 2; /* as many are too many */
}

void suggest_offer(struct suggest *suggest, const char *name)
{
    size_t size = strlen(name);
    size_t found;

    if (suggest->size == 0 || suggest->size > SUGGEST_MAX_BYTES || size > SUGGEST_MAX_BYTES)
        return;
    found = distance(suggest->word, suggest->size, name, size);
    if (found >= suggest->distance)
        return;
    suggest->distance = found;
    suggest->best = name;
}
