/* pace.h - how eagerly the loop's thread takes the processor from the programs.
 *
 * A switch between two processes costs an emulated processor what it knows of both. While
 * output comes in bulk we do not interrupt its program: it goes on until its pipe is full or
 * its time is up, and what we take then is more at once. Programs and threads inherit it, so
 * whoever starts one is prompt first. */
#pragma once

enum pace {
    PACE_PROMPT, /* at once, as every process */
    PACE_BULK,   /* when whoever has it lets go, or the scheduler finds that it is our turn */
};

/* The loop's thread only. Cheap when nothing changes. */
void pace_set(enum pace pace);
