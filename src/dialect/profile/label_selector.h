/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Label selectors as kubectl takes them: "pool=a100,!spot". Of the forms with sets (in, notin) none is
 * known. Source: k8s.io/apimachinery/pkg/labels. Pure functions.
 */
#include <gpuledger/object.h>

/* Whether it is one: one term at least, each KEY, !KEY, KEY=VALUE, KEY==VALUE or KEY!=VALUE. */
bool label_selector_check(const char *selector);

/* Of what label_selector_check takes: whether all its terms hold for the labels. */
bool label_selector_matches(const char *selector, const struct string_pairs *labels);
