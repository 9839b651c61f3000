/* document.h - docs/benchmarks.md out of a run's JSON and rows.def. */
#pragma once

#include <stdio.h>

/* 0; -1 with a line on stderr: FILE cannot be read, or is no report. */
int document_write(const char *path, FILE *to);
