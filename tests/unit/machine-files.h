/* SPDX-License-Identifier: BSD-3-Clause */
/* A described machine for tests: a directory of small files, made by the test and removed with it. */
#ifndef LOCUS_TESTS_MACHINE_FILES_H
#define LOCUS_TESTS_MACHINE_FILES_H

/* Makes an empty machine (DIR/sys and nothing else) in TMPDIR that stands in for this one; returns DIR, static. */
const char *machine_files_begin(void);

/* Writes DIR/path with this text and a newline, directories on the way included. */
void machine_files_put(const char *path, const char *text);

/* Writes DIR/sys/bus/event_source/devices/PMU/file. */
void machine_files_put_pmu(const char *pmu, const char *file, const char *text);

/* Removes the machine; this one is looked at again. */
void machine_files_end(void);

#endif
