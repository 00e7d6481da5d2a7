// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Objects in segments with metadata: the fetch with its window, and what serves them. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "pull.h"

enum {
	WINDOW_MIN = 4,
	WINDOW_MAX = 256,
	TRIES = 8,
	LIFETIME_MS = 1000,
	SIZE_MAX_DEFAULT = 1 << 30,
};

// A segment that was asked for, or that came before its turn.
struct slot {
	int64_t sent;
	int tries;
	size_t len;  // of `wire`, when it came
	uint8_t *wire;
};

struct fetch {
	struct onym_pull *app;
	struct onym_name base;
	const struct onym_pull_how *how;
	uint64_t following, asked, recover;  // segments: given next, asked for next, of the last loss
	int64_t last;                        // -1: not known yet
	double window, threshold, trip, deviation;
	int64_t total;
	int error;
	struct slot slots[WINDOW_MAX];
};

static struct slot *slot(struct fetch *f, uint64_t segment)
{
	return &f->slots[segment % WINDOW_MAX];
}

static int ask(struct fetch *f, uint64_t segment)
{
	struct onym_name name = f->base;

	slot(f, segment)->sent = onym_now_ms();
	slot(f, segment)->tries++;
	return onym_name_segment(&name, segment) ?: onym_pull_send(f->app, &name, 0, LIFETIME_MS);
}

// RFC 6298 without Karn's second sample: of segments that were asked for once.
static void measured(struct fetch *f, double took)
{
	double off = took > f->trip ? took - f->trip : f->trip - took;

	f->deviation = f->trip < 0 ? took / 2 : f->deviation + (off - f->deviation) / 4;
	f->trip = f->trip < 0 ? took : f->trip + (took - f->trip) / 8;
}

static int64_t patience(const struct fetch *f)
{
	double ms = f->trip < 0 ? LIFETIME_MS : f->trip + 4 * f->deviation;

	return ms < 200 ? 200 : ms > LIFETIME_MS ? LIFETIME_MS : (int64_t)ms;
}

static void grow(struct fetch *f)
{
	f->window += f->window < f->threshold ? 1 : 1 / f->window;
	if (f->window > WINDOW_MAX)
		f->window = WINDOW_MAX;
}

// Once for all segments that were under way.
static void lost(struct fetch *f, uint64_t segment)
{
	if (segment < f->recover)
		return;
	f->recover = f->asked;
	f->threshold = f->window = f->window / 2 > WINDOW_MIN ? f->window / 2 : WINDOW_MIN;
}

// The number of the segment of this object that a name ends with; UINT64_MAX: another name.
static uint64_t segment_of(const struct onym_name *base, const uint8_t *name, size_t len)
{
	const uint8_t *at = name + base->len;
	struct onym_element e;
	size_t n;

	if (len <= base->len || memcmp(name, base->v, base->len) || onym_next(&at, name + len, &e))
		return UINT64_MAX;
	n = (size_t)(e.end - e.value);
	if (at != name + len || e.type != TLV_SEGMENT || (n != 1 && n != 2 && n != 4 && n != 8))
		return UINT64_MAX;
	return onym_get_nni(e.value, n);
}

static int segment_came(void *ctx, const struct onym_answer *answer)
{
	const struct onym_pull_data *data = &answer->data;
	struct fetch *f = ctx;
	uint64_t segment = answer->nacked ? segment_of(&f->base, answer->nacked, answer->nacked_len) :
					    segment_of(&f->base, data->name, data->name_len);
	struct slot *s = slot(f, segment);

	if (segment < f->following || segment >= f->asked || s->len)
		return 0;
	if (answer->nacked) {
		// Asked again when its time is over.
		lost(f, segment);
		return 0;
	}
	s->wire = malloc(data->wire_len);
	if (!s->wire)
		return -ENOMEM;
	memcpy(s->wire, data->wire, data->wire_len);
	s->len = data->wire_len;
	if (s->tries == 1)
		measured(f, (double)(onym_now_ms() - s->sent));
	grow(f);
	return 0;
}

static int give(struct fetch *f, struct slot *s)
{
	uint64_t most = f->how->size_max ?: SIZE_MAX_DEFAULT, len;
	struct onym_element e = { .at = s->wire, .value = s->wire };
	struct onym_pull_data data;
	int error;

	onym_get_tl(&e.value, s->wire + s->len, &e.type, &len);
	e.end = e.value + len;
	// Whole and undamaged: it was, when it came.
	error = onym_data_fields(&e, &data) ?: f->how->check ? f->how->check(f->how->ctx, &data) : 0;
	if (error)
		return error;
	if (data.last_segment >= 0)
		f->last = data.last_segment;
	// Only the last one may be empty, so that size_max ends what does not end.
	if (!data.len && (int64_t)f->following != f->last)
		return -EPROTO;
	f->total += (int64_t)data.len;
	if ((uint64_t)f->total > most)
		return -EFBIG;
	return f->how->sink(f->how->ctx, f->following, data.content, data.len);
}

static int give_all(struct fetch *f)
{
	struct slot *s = slot(f, f->following);
	int error = 0;

	while (!error && f->following < f->asked && s->len) {
		error = give(f, s);
		free(s->wire);
		*s = (struct slot){ 0 };
		f->following++;
		s = slot(f, f->following);
	}
	return error;
}

// Asks for what has room and again for what is late; how long the next may take.
static int ask_all(struct fetch *f, int64_t *until)
{
	// Until it is known where it ends, no segment is asked for that may not be there.
	uint64_t end = f->last < 0 ? f->following : (uint64_t)f->last;
	int64_t now = onym_now_ms(), late = patience(f);
	int error = 0;

	*until = now + late;
	for (uint64_t i = f->following; i < f->asked && !error; i++) {
		struct slot *s = slot(f, i);
		int64_t due = s->sent + (late << (s->tries < 4 ? s->tries - 1 : 3));

		if (s->len)
			continue;
		if (now >= due) {
			lost(f, i);
			error = s->tries < TRIES ? ask(f, i) : -ETIMEDOUT;
		} else if (due < *until) {
			*until = due;
		}
	}
	while (!error && f->asked <= end && f->asked - f->following < (uint64_t)f->window)
		error = ask(f, f->asked++);
	return error;
}

static int run(struct fetch *f)
{
	int error = 0;

	f->app->answered = segment_came;
	f->app->ctx = f;
	while (!error && (f->last < 0 || f->following <= (uint64_t)f->last)) {
		int64_t until;

		error = ask_all(f, &until);
		if (!error) {
			int got = onym_stream_turn(&f->app->stream, POLLIN, until);

			error = got < 0 ? got : give_all(f);
		}
	}
	f->app->answered = NULL;
	for (size_t i = 0; i < WINDOW_MAX; i++)
		free(f->slots[i].wire);
	return error;
}

static int ends_with_version(const struct onym_name *name)
{
	const uint8_t *at = name->v, *end = name->v + name->len;
	struct onym_element e = { 0 };

	while (at < end)
		if (onym_next(&at, end, &e))
			return 0;
	return e.type == TLV_VERSION;
}

// The version that metadata lead to.
static int newest(struct onym_pull *app, const struct onym_name *name, struct onym_name *version)
{
	struct onym_name metadata = *name;
	struct onym_pull_data data;
	struct onym_element e;
	const uint8_t *at;
	int error = onym_name_append(&metadata, TLV_KEYWORD, "metadata", 8), tries = 4;

	while (!error && tries--) {
		error = onym_pull_get(app, &metadata, ONYM_CAN_BE_PREFIX | ONYM_MUST_BE_FRESH, LIFETIME_MS, &data);
		if (error != -ETIMEDOUT)
			break;
		error = tries ? 0 : error;
	}
	if (error)
		return error;
	at = data.content;
	if (!at || onym_next(&at, at + data.len, &e) || e.type != TLV_NAME)
		return -EPROTO;
	version->len = (size_t)(e.end - e.value);
	if (version->len > sizeof(version->v) || version->len < name->len || memcmp(e.value, name->v, name->len))
		return -EPROTO;
	memcpy(version->v, e.value, version->len);
	return 0;
}

int64_t onym_pull_fetch(struct onym_pull *app, const struct onym_name *name, const struct onym_pull_how *how)
{
	struct fetch *f = calloc(1, sizeof(*f));
	int64_t got;
	int error;

	if (!f)
		return -ENOMEM;
	f->app = app;
	f->base = *name;
	f->how = how;
	f->last = -1;
	f->trip = -1;
	f->window = WINDOW_MIN;
	f->threshold = WINDOW_MAX;
	error = ends_with_version(name) ? 0 : newest(app, name, &f->base);
	error = error ?: run(f);
	got = error ? error : f->total;
	free(f);
	return got;
}

// Metadata (RDR): the name with its version, and the last segment.
static ssize_t metadata(const struct onym_pull_object *object, const struct onym_name *asked, const uint8_t *final,
			size_t final_len, uint8_t *buf, size_t size)
{
	uint8_t content[sizeof(asked->v) + 64], *p = onym_put_tl(content, TLV_NAME, object->name.len);
	struct onym_name name = *asked;
	struct onym_data d = { .name = &name, .content = content, .freshness = 1 };
	int error;

	memcpy(p, object->name.v, object->name.len);
	p = onym_put_tl(p + object->name.len, TLV_FINAL, final_len);
	memcpy(p, final, final_len);
	d.len = (size_t)(p + final_len - content);
	error = onym_name_version(&name, (uint64_t)onym_now_ms()) ?: onym_name_segment(&name, 0);
	return error ?: onym_data_make(&d, object->key, buf, size);
}

ssize_t onym_pull_segment(const struct onym_pull_object *object, const struct onym_pull_interest *interest,
			  uint8_t *buf, size_t size)
{
	static const uint8_t word[] = { TLV_KEYWORD, 8, 'm', 'e', 't', 'a', 'd', 'a', 't', 'a' };
	uint64_t last = object->len ? (object->len - 1) / ONYM_SEGMENT : 0, segment;
	const struct onym_name *asked = &interest->name;
	size_t base = asked->len - sizeof(word), at, left;
	uint8_t final[12];
	size_t final_len = (size_t)(onym_put_nni(final, TLV_SEGMENT, last) - final);

	if (asked->len > sizeof(word) && !memcmp(asked->v + base, word, sizeof(word)) && base < object->name.len &&
	    !memcmp(asked->v, object->name.v, base))
		return metadata(object, asked, final, final_len, buf, size);
	segment = segment_of(&object->name, asked->v, asked->len);
	if (segment > last)
		return 0;
	at = (size_t)segment * ONYM_SEGMENT;
	left = object->len - at;
	return onym_data_make(&(struct onym_data){
		.name = asked, .content = object->content + at, .len = left < ONYM_SEGMENT ? left : ONYM_SEGMENT,
		.freshness = 1000, .final = final, .final_len = final_len,
	}, object->key, buf, size);
}
