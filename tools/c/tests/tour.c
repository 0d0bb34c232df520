/* A tour of hamdex.h in C: calls every function, with success and with errors. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "hamdex.h"

#define CHECK(condition)                                                           \
    do {                                                                           \
        if (!(condition)) {                                                        \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                               \
        }                                                                          \
    } while (0)

/* Fails with the message of an error. */
#define OK(call)                                                                            \
    do {                                                                                    \
        hamdex_error *error_ = (call);                                                      \
        if (error_ != NULL) {                                                               \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, hamdex_error_message(error_)); \
            exit(1);                                                                        \
        }                                                                                   \
    } while (0)

static void refused(hamdex_error *error, hamdex_error_code code, hamdex_fault fault,
                    const char *words, int line) {
    if (error == NULL || hamdex_error_code_of(error) != code || hamdex_error_fault(error) != fault ||
        strstr(hamdex_error_message(error), words) == NULL) {
        fprintf(stderr, "%s:%d: expected \"%s\", got \"%s\"\n", __FILE__, line, words,
                hamdex_error_message(error));
        exit(1);
    }
    hamdex_error_free(error);
}

#define REFUSED(call, code, fault, words) refused((call), (code), (fault), (words), __LINE__)
#define CALLER HAMDEX_FAULT_CALLER

static hamdex_bytes below(char *buffer, size_t size, const char *directory, const char *name) {
    CHECK(snprintf(buffer, size, "%s/%s", directory, name) < (int)size);
    return hamdex_text(buffer);
}

static bool is(hamdex_bytes bytes, const char *text) {
    return bytes.len == strlen(text) && memcmp(bytes.data, text, bytes.len) == 0;
}

static void texts(hamdex_pipeline **page) {
    static const char *first = "The old bridge over the river stays closed until spring, because "
                               "divers found cracks in two of its five pillars.";
    static const char *second = "The old bridge over the river stays closed until summer, because "
                                "divers found cracks in two of its five pillars.";
    hamdex_pipeline *same = NULL;
    hamdex_fingerprint a, b;
    size_t features = 7;

    OK(hamdex_pipeline_preset(hamdex_text("page"), page));
    OK(hamdex_pipeline_fingerprint(*page, hamdex_text(first), 64, &a, &features));
    CHECK(features > 50 && a.high == 0 && a.low != 0);
    OK(hamdex_pipeline_parse(hamdex_pipeline_descriptor(*page), &same));
    OK(hamdex_pipeline_fingerprint(same, hamdex_text(first), 64, &b, &features));
    CHECK(hamdex_distance(a, b) == 0);
    OK(hamdex_pipeline_fingerprint(same, hamdex_text(second), 64, &b, &features));
    CHECK(hamdex_distance(a, b) > 0 && hamdex_distance(a, b) < 26);
    OK(hamdex_pipeline_fingerprint(same, hamdex_text(first), 128, &b, &features));
    CHECK(b.high != 0);
    OK(hamdex_pipeline_fingerprint(same, hamdex_text(" "), 64, &b, &features));
    CHECK(features == 0 && b.low == 0);

    REFUSED(hamdex_pipeline_fingerprint(same, hamdex_text("\xff"), 64, &b, &features),
            HAMDEX_ERROR_CODE_INVALID_ARGUMENT, CALLER, "text is not UTF-8");
    REFUSED(hamdex_pipeline_fingerprint(same, hamdex_text(first), 63, &b, &features),
            HAMDEX_ERROR_CODE_INVALID_ARGUMENT, CALLER, "not 63");
    REFUSED(hamdex_pipeline_fingerprint(same, hamdex_text(first), 64, &b, NULL),
            HAMDEX_ERROR_CODE_NULL_ARGUMENT, CALLER, "features is NULL");
    hamdex_pipeline_free(same);
    REFUSED(hamdex_pipeline_preset(hamdex_text("sonnet"), &same), HAMDEX_ERROR_CODE_INVALID_OPTION,
            CALLER, "sonnet");
    CHECK(same == NULL);
    hamdex_pipeline_free(NULL);
}

/* Creates, fills, searches and empties an index of each width. */
static void index_of(const char *directory, uint32_t bits, const hamdex_pipeline *pipeline) {
    char name[16], buffer[4096];
    hamdex_bytes path;
    hamdex_options options = hamdex_options_default();
    hamdex_index *index = NULL, *second = NULL;
    hamdex_matches *matches = NULL;
    hamdex_answers *answers = NULL;
    hamdex_check *check = NULL;
    hamdex_pipeline *stored = NULL;
    hamdex_stats stats;
    hamdex_batch_report report;
    hamdex_fingerprint base = hamdex_fingerprint_of(0xff), found, far_away, asked[2];
    hamdex_document array[3];
    hamdex_documents documents;
    hamdex_fingerprints queries;
    hamdex_match match;
    uint64_t count = 0;
    bool flag = true;

    CHECK(snprintf(name, sizeof name, "of %" PRIu32, bits) > 0);
    path = below(buffer, sizeof buffer, directory, name);
    options.bits = bits;
    options.distance = 2;
    options.plan = hamdex_text("5x1");
    options.pipeline = pipeline;
    options.memory = (size_t)16 << 20;
    base.high = bits == 128 ? UINT64_C(1) << 63 : 0;
    far_away = base;
    far_away.low ^= UINT64_C(0xf0f0f0);

    OK(hamdex_index_create(path, &options, &index));
    CHECK(hamdex_index_bits(index) == bits && hamdex_index_distance(index) == 2);
    OK(hamdex_index_pipeline(index, &stored));
    CHECK((stored == NULL) == (pipeline == NULL));
    hamdex_pipeline_free(stored);

    OK(hamdex_index_insert(index, hamdex_text("a"), base, true, &flag));
    CHECK(!flag);
    OK(hamdex_index_insert(index, hamdex_text("a"), base, false, &flag));
    CHECK(flag);
    array[0].key = hamdex_text("b");
    array[0].fingerprint = base;
    array[0].fingerprint.low ^= 1;
    array[1].key = hamdex_text("c");
    array[1].fingerprint = base;
    array[1].fingerprint.low ^= 6;
    array[2].key = hamdex_text("far");
    array[2].fingerprint = far_away;
    documents.data = array;
    documents.len = 3;
    OK(hamdex_index_insert_batch(index, documents, false, &report));
    CHECK(report.inserted == 3 && report.replaced == 0);

    OK(hamdex_index_search(index, base, HAMDEX_OWN_DISTANCE, 0, &matches));
    CHECK(hamdex_matches_len(matches) == 3);
    match = hamdex_matches_at(matches, 2);
    CHECK(is(match.key, "c") && match.distance == 2);
    CHECK(match.fingerprint.low == (base.low ^ 6) && match.fingerprint.high == base.high);
    match = hamdex_matches_at(matches, 3);
    CHECK(match.key.len == 0 && match.distance == UINT32_MAX);
    hamdex_matches_free(matches);
    OK(hamdex_index_search(index, base, 1, 1, &matches));
    CHECK(hamdex_matches_len(matches) == 1 && is(hamdex_matches_at(matches, 0).key, "a"));
    hamdex_matches_free(matches);

    asked[0] = far_away;
    asked[1] = base;
    queries.data = asked;
    queries.len = 2;
    OK(hamdex_index_search_batch(index, queries, 0, 0, &answers));
    CHECK(hamdex_answers_len(answers) == 2);
    CHECK(is(hamdex_matches_at(hamdex_answers_at(answers, 0), 0).key, "far"));
    CHECK(is(hamdex_matches_at(hamdex_answers_at(answers, 1), 0).key, "a"));
    CHECK(hamdex_answers_at(answers, 2) == NULL);
    hamdex_answers_free(answers);

    OK(hamdex_index_insert_if_new(index, hamdex_text("d"), base, 3, false, &matches));
    CHECK(hamdex_matches_len(matches) == 1 && is(hamdex_matches_at(matches, 0).key, "a"));
    hamdex_matches_free(matches);
    far_away.low ^= UINT64_C(0x0f0f0f00);
    OK(hamdex_index_insert_if_new(index, hamdex_text("d"), far_away, 3, false, &matches));
    CHECK(matches != NULL && hamdex_matches_len(matches) == 0);
    hamdex_matches_free(matches);

    OK(hamdex_index_get(index, hamdex_text("d"), &found, &flag));
    CHECK(flag && hamdex_distance(found, far_away) == 0);
    OK(hamdex_index_remove(index, hamdex_text("d"), true, &flag));
    CHECK(flag);
    OK(hamdex_index_remove(index, hamdex_text("d"), true, NULL));
    OK(hamdex_index_get(index, hamdex_text("d"), NULL, &flag));
    CHECK(!flag);

    OK(hamdex_index_len(index, &count));
    CHECK(count == 4);
    OK(hamdex_index_merge(index, &count));
    OK(hamdex_index_fold(index, NULL));
    /* Four documents and a removed one, in five tables. */
    CHECK(count == 25);
    OK(hamdex_index_flush(index));
    OK(hamdex_index_stats(index, &stats));
    CHECK(stats.documents == 4 && stats.fingerprints == 4 && stats.singles == 0 && stats.runs == 1);
    OK(hamdex_index_check(index, &check));
    CHECK(hamdex_check_documents(check) == 4 && hamdex_check_problems(check) == 0);
    CHECK(hamdex_check_problem(check, 0).len == 0);
    hamdex_check_free(check);

    REFUSED(hamdex_index_insert(index, hamdex_text(""), base, false, NULL),
            HAMDEX_ERROR_CODE_INVALID_KEY, CALLER, "0 bytes");
    REFUSED(hamdex_index_search(index, base, bits, 0, &matches), HAMDEX_ERROR_CODE_INVALID_DISTANCE,
            CALLER, "the maximum for");
    CHECK(matches == NULL);
    documents.data = NULL;
    REFUSED(hamdex_index_insert_batch(index, documents, false, NULL),
            HAMDEX_ERROR_CODE_NULL_ARGUMENT, CALLER, "documents is NULL");
    if (bits < 128) {
        base.high = 1;
        REFUSED(hamdex_index_search(index, base, 1, 0, &matches),
                HAMDEX_ERROR_CODE_INVALID_FINGERPRINT, CALLER, "it has more bits");
    }
    REFUSED(hamdex_index_create(path, &options, &second), HAMDEX_ERROR_CODE_ALREADY_EXISTS, CALLER,
            "already holds");
    CHECK(second == NULL);
    hamdex_index_close(index);
}

static void opening(const char *directory) {
    char buffer[4096], other[4096];
    hamdex_bytes path = below(buffer, sizeof buffer, directory, "built");
    hamdex_bytes missing = below(other, sizeof other, directory, "missing");
    hamdex_open_options options = hamdex_open_options_default();
    hamdex_build_report report;
    hamdex_document array[3];
    hamdex_documents documents = {array, 3};
    hamdex_index *index = NULL, *second = NULL;
    uint64_t count = 0;

    array[0].key = hamdex_text("one");
    array[0].fingerprint = hamdex_fingerprint_of(1);
    array[1].key = hamdex_text("two");
    array[1].fingerprint = hamdex_fingerprint_of(2);
    array[2].key = hamdex_text("one");
    array[2].fingerprint = hamdex_fingerprint_of(3);
    OK(hamdex_build(path, NULL, documents, &report));
    CHECK(report.documents == 2 && report.duplicates == 1 && report.fingerprints == 2);
    CHECK(report.replaced == 0);

    options.memory = (size_t)16 << 20;
    OK(hamdex_index_open(path, 0, &options, &index));
    CHECK(hamdex_index_bits(index) == 64);
    OK(hamdex_index_len(index, &count));
    CHECK(count == 2);
    REFUSED(hamdex_index_open(path, 64, &options, &second), HAMDEX_ERROR_CODE_LOCKED,
            HAMDEX_FAULT_ENVIRONMENT, "in use");
    CHECK(second == NULL);
    options.read_only = true;
    OK(hamdex_index_open(path, 64, &options, &second));
    REFUSED(hamdex_index_insert(second, hamdex_text("three"), array[0].fingerprint, true, NULL),
            HAMDEX_ERROR_CODE_READ_ONLY, CALLER, "read-only");
    hamdex_index_close(second);
    hamdex_index_close(index);

    REFUSED(hamdex_index_open(path, 32, NULL, &index), HAMDEX_ERROR_CODE_WIDTH_MISMATCH, CALLER,
            "64-bit fingerprints, not 32-bit ones");
    CHECK(index == NULL);
    REFUSED(hamdex_index_open(missing, 0, NULL, &index), HAMDEX_ERROR_CODE_NOT_FOUND, CALLER,
            "missing holds no hamdex index");
    REFUSED(hamdex_index_open(path, 64, NULL, NULL), HAMDEX_ERROR_CODE_NULL_ARGUMENT, CALLER,
            "index is NULL");
    REFUSED(hamdex_index_search(NULL, array[0].fingerprint, 1, 0, NULL),
            HAMDEX_ERROR_CODE_NULL_ARGUMENT, CALLER, "matches is NULL");
    REFUSED(hamdex_index_len(NULL, &count), HAMDEX_ERROR_CODE_NULL_ARGUMENT, CALLER,
            "index is NULL");
}

/* Functions that take an object also accept NULL. */
static void nothing(void) {
    CHECK(hamdex_error_code_of(NULL) == HAMDEX_ERROR_CODE_NONE);
    CHECK(hamdex_error_fault(NULL) == HAMDEX_FAULT_CALLER);
    CHECK(strcmp(hamdex_error_message(NULL), "") == 0);
    CHECK(hamdex_index_bits(NULL) == 0 && hamdex_index_distance(NULL) == 0);
    CHECK(hamdex_matches_len(NULL) == 0 && hamdex_matches_at(NULL, 0).key.data == NULL);
    CHECK(hamdex_answers_len(NULL) == 0 && hamdex_answers_at(NULL, 0) == NULL);
    CHECK(hamdex_check_documents(NULL) == 0 && hamdex_check_problems(NULL) == 0);
    CHECK(hamdex_check_problem(NULL, 0).len == 0);
    CHECK(hamdex_pipeline_descriptor(NULL).len == 0 && hamdex_text(NULL).len == 0);
    hamdex_error_free(NULL);
    hamdex_index_close(NULL);
    hamdex_matches_free(NULL);
    hamdex_answers_free(NULL);
    hamdex_check_free(NULL);
}

int main(int argc, char **argv) {
    hamdex_pipeline *page = NULL;

    CHECK(argc == 2);
    CHECK(strlen(hamdex_version()) >= 5);
    texts(&page);
    index_of(argv[1], 32, NULL);
    index_of(argv[1], 64, page);
    index_of(argv[1], 128, NULL);
    hamdex_pipeline_free(page);
    opening(argv[1]);
    nothing();
    return 0;
}
