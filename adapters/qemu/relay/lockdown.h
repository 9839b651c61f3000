/* lockdown.h - what this process may still do when frames of a guest come: a part of the system
 * calls, a bounded memory. What it may open and who it is, the adapter has settled before
 * (confine.h). */
#pragma once

/* An address sanitizer needs all the memory there is, and calls of its own: there is no
 * lockdown with it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* 1024 connections with both of libslirp's buffers full are 260 MiB. */
#define LOCKDOWN_MEMORY_BYTES (400ull * 1024 * 1024)

/* For good. 0 or -errno. */
int lockdown_enter(void);
