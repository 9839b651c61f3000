/* pattern_without_jit.c - stands in for PCRE2's just-in-time compiler, which pattern.c never
 * uses: as a static library it would be a sixth of the program. No pattern is compiled for it,
 * so none of these has anything to do. Linked where PCRE2 wants no more than them. */
#include <pcre2.h>

const char *_pcre2_jit_get_target_8(void);
size_t _pcre2_jit_get_size_8(void *code);
int _pcre2_jit_check_exec_8(void *code, uint32_t options); /* of Debian's */
void _pcre2_jit_free_8(void *code, void *memory);
void _pcre2_jit_free_rodata_8(void *code, void *memory);

int pcre2_jit_match_8(const pcre2_code_8 *code, PCRE2_SPTR8 subject, PCRE2_SIZE size,
                      PCRE2_SIZE start, uint32_t options, pcre2_match_data_8 *match_data,
                      pcre2_match_context_8 *context)
{
    return PCRE2_ERROR_JIT_BADOPTION;
}

const char *_pcre2_jit_get_target_8(void)
{
    return "none";
}

size_t _pcre2_jit_get_size_8(void *code)
{
    return 0;
}

int _pcre2_jit_check_exec_8(void *code, uint32_t options)
{
    return 0;
}

void _pcre2_jit_free_8(void *code, void *memory)
{
}

void _pcre2_jit_free_rodata_8(void *code, void *memory)
{
}
