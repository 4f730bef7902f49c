/* SPDX-License-Identifier: BSD-3-Clause */
/* The exporters by name, for exporters.c and the files that define them. */
#ifndef LOCUS_EXPORT_EXPORTER_LIST_H
#define LOCUS_EXPORT_EXPORTER_LIST_H

#include "export/exporters.h"

extern const struct exporter export_vars_text, export_vars_csv, export_vars_html, export_vars_json;
extern const struct exporter export_regions_text, export_regions_csv, export_regions_json;
extern const struct exporter export_tree_text, export_tree_csv, export_tree_json;
extern const struct exporter export_leaks_text, export_leaks_csv, export_leaks_json;

#endif
