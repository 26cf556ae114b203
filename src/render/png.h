/* SPDX-License-Identifier: Apache-2.0 */
/* A flame graph as a picture, drawn by cairo: bars of 16 px that grow upwards, siblings by name, colours of the pages.
 * Equal trees give equal pictures, and a frame has one colour and one place among its siblings in all of them, unless
 * the colours are to move. */
#pragma once

#include "render/tree.h"

#define RENDER_PNG_WIDTH 1024 /* as go-profile has them */
#define RENDER_PNG_HEIGHT 800
#define RENDER_PNG_SIDE_LEAST 64
#define RENDER_PNG_SIDE_MAX 8192

struct render_png_config {
	uint32_t width, height; /* RENDER_PNG_SIDE_LEAST to RENDER_PNG_SIDE_MAX */
	const char *title;      /* NULL: "Flame Graph" */
	uint64_t shimmer;       /* 0: the pages' colours; the picture's number from 1 on: go-profile's, which move */
};

/** render_png_possible - was this program built with cairo? */
bool render_png_possible(void);
/**
 * render_png - append the file
 * @t: NULL: an empty picture
 * Return: 0, -ENOTSUP without cairo, -ENOMEM, -E2BIG.
 */
int render_png(const struct tree *t, const struct render_png_config *cfg, struct buf *out) warn_unused;
