/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of different sample types: what they share. */
#include "model/model.h"

static bool same_name(const struct model *a, size_t i, const struct model *b, size_t j)
{
	const struct model_value_type *x = &a->value_types[i], *y = &b->value_types[j];

	return str_eq(model_string(a, x->type), model_string(b, y->type)) &&
	       str_eq(model_string(a, x->unit), model_string(b, y->unit));
}

int model_column_like(const struct model *a, size_t i, const struct model *b)
{
	for (size_t j = 0; j < b->value_type_count; j++)
		if (same_name(a, i, b, j))
			return (int)j;
	return -1;
}

/* Rows move towards the front: samples have their values in order. */
static void keep_columns(struct model *m, const int *columns, size_t width)
{
	struct model_value_type types[MODEL_VALUE_TYPES_MAX];

	for (size_t i = 0; i < width; i++)
		types[i] = m->value_types[columns[i]];
	for (size_t i = 0; i < m->samples_count; i++) {
		const int64_t *cells = model_values(m, &m->samples[i]);
		int64_t values[MODEL_VALUE_TYPES_MAX];

		for (size_t j = 0; j < width; j++)
			values[j] = cells[columns[j]];
		m->samples[i].first_value = (uint32_t)(i * width);
		memcpy(m->values + i * width, values, width * sizeof(*values));
	}
	memcpy(m->value_types, types, width * sizeof(*types));
	m->value_type_count = width;
	m->values_count = m->samples_count * width;
	m->period_type = (struct model_value_type){ 0 };
	m->period = 0;
	m->default_type = 0;
}

int model_keep_common(struct model *a, struct model *b)
{
	int of_a[MODEL_VALUE_TYPES_MAX], of_b[MODEL_VALUE_TYPES_MAX];
	size_t width = 0;

	for (size_t i = 0; i < a->value_type_count; i++) {
		int j = model_column_like(a, i, b);

		if (j < 0 || model_column_like(a, i, a) != (int)i) /* of two with one name the first one counts */
			continue;
		of_a[width] = (int)i;
		of_b[width++] = j;
	}
	if (!width)
		return -EINVAL;
	keep_columns(a, of_a, width);
	keep_columns(b, of_b, width);
	return 0;
}
