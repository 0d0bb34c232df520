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

/* Counts the calls of a callback, and when to stop. */
typedef struct calls {
    size_t documents, bad, limit;
    hamdex_index *index;
} calls;

static int on_document(void *context, const hamdex_file_document *document) {
    calls *made = context;
    CHECK(document->key.len == 1 && document->place.file.len > 0 && document->length > 0);
    CHECK(document->place.row == document->place.ordinal + 1 && document->features > 0);
    OK(hamdex_index_insert(made->index, document->key, document->fingerprint, false, NULL));
    return ++made->documents == made->limit;
}

static int on_fingerprint(void *context, const hamdex_file_document *document) {
    CHECK(is(document->key, "a") && document->features == 0 && document->length == 0);
    *(hamdex_fingerprint *)context = document->fingerprint;
    return 0;
}

static int on_bad(void *context, const hamdex_bad_row *row) {
    static const char *reasons[] = {"field \"text\" is null", "duplicate id a", "broken JSON: "};
    calls *made = context;
    CHECK(made->bad < 3 && row->reason.len >= strlen(reasons[made->bad]));
    CHECK(memcmp(row->reason.data, reasons[made->bad], strlen(reasons[made->bad])) == 0);
    CHECK(row->place.row == 3 + made->bad);
    return ++made->bad == made->limit;
}

static int on_row(void *context, const hamdex_row *row) {
    calls *made = context;
    CHECK(row->kept == (row->fate == HAMDEX_FATE_KEPT || row->fate == HAMDEX_FATE_BLANK));
    if (row->fate == HAMDEX_FATE_STORED) {
        CHECK(is(row->stored_key, "b") && row->distance == 0 && row->kept_place.file.len == 0);
    }
    made->documents += row->kept;
    made->bad += row->fate == HAMDEX_FATE_BAD;
    return made->documents == made->limit;
}

/* An exported index has its settings in its first line, and fingerprints. */
static void exported(const char *directory) {
    static const char *lines =
        "{\"hamdex_export\":1,\"bits\":128,\"distance\":9,\"plan\":\"4\",\"pipeline\":\"\","
        "\"keeps_features\":false,\"resources\":{}}\n"
        "{\"id\":\"a\",\"fingerprint\":\"0123456789abcdef0123456789abcdef\"}\n";
    char name[4096];
    hamdex_bytes path = below(name, sizeof name, directory, "index.jsonl");
    hamdex_files files = hamdex_files_default();
    hamdex_settings *settings = NULL;
    hamdex_fingerprint found = {0, 0};
    FILE *file = fopen(name, "wb");

    CHECK(file != NULL && fputs(lines, file) >= 0 && fclose(file) == 0);
    files.paths.data = &path;
    files.paths.len = 1;
    OK(hamdex_files_choose(&files, 0, &settings));
    CHECK(hamdex_settings_bits(settings) == 128 && hamdex_settings_distance(settings) == 9);
    CHECK(hamdex_settings_pipeline(settings) == NULL);
    hamdex_settings_free(settings);
    OK(hamdex_files_read(&files, NULL, 0, on_fingerprint, NULL, &found, NULL));
    CHECK(found.high == UINT64_C(0x0123456789abcdef) && found.low == found.high);
}

static void rows(const char *directory) {
    static const char *lines =
        "{\"id\":\"a\",\"text\":\"The old bridge over the river stays closed until spring.\"}\n"
        "{\"id\":\"b\",\"text\":\"今天是晴天，适合去公园散步、看书和喝茶。\"}\n"
        "{\"id\":\"c\",\"text\":null}\n"
        "{\"id\":\"a\",\"text\":\"The town library lends drills, ladders and sewing machines.\"}\n"
        "{\"id\":\"d\",\"text\":\n";
    char name[4096], other[4096];
    hamdex_bytes paths[1];
    hamdex_files files = hamdex_files_default();
    hamdex_dedup_options options = hamdex_dedup_options_default();
    hamdex_options settings_of_index = hamdex_options_default();
    hamdex_settings *settings = NULL;
    hamdex_read_report read;
    hamdex_dedup_report report;
    hamdex_stop *stop = hamdex_stop_new();
    calls made = {0, 0, 0, NULL};
    FILE *file;

    paths[0] = below(name, sizeof name, directory, "rows.jsonl");
    file = fopen(name, "wb");
    CHECK(file != NULL && fputs(lines, file) >= 0 && fclose(file) == 0);
    REFUSED(hamdex_files_choose(&files, 0, &settings), HAMDEX_ERROR_CODE_INVALID_ARGUMENT, CALLER,
            "there are no paths");
    files.paths.data = paths;
    files.paths.len = 1;

    OK(hamdex_files_choose(&files, 0, &settings));
    CHECK(hamdex_settings_bits(settings) == 64 && hamdex_settings_distance(settings) > 3);
    CHECK(is(hamdex_settings_verification(settings), "none"));
    CHECK(hamdex_settings_advice(settings).len > 20);
    settings_of_index.distance = hamdex_settings_distance(settings);
    settings_of_index.pipeline = hamdex_settings_pipeline(settings);
    settings_of_index.plan = hamdex_text("4");
    OK(hamdex_index_create(below(other, sizeof other, directory, "of rows"), &settings_of_index,
                           &made.index));
    files.max_bad = hamdex_text("2");
    OK(hamdex_files_read(&files, settings_of_index.pipeline, 64, on_document, on_bad, &made, &read));
    CHECK(made.documents == 2 && made.bad == 3 && read.rows == 5 && read.documents == 2);
    CHECK(read.rejects == 3 && read.blanks == 1);
    hamdex_settings_free(settings);
    /* The same pipeline is chosen again. */
    made.documents = made.bad = 0;
    OK(hamdex_files_read(&files, NULL, 0, on_document, NULL, &made, NULL));
    CHECK(made.documents == 2 && made.bad == 0);
    made.documents = 0;
    made.limit = 1;
    REFUSED(hamdex_files_read(&files, NULL, 0, on_document, on_bad, &made, &read),
            HAMDEX_ERROR_CODE_STOPPED, CALLER, "cancelled by the caller");
    CHECK(made.documents == 1);
    made.documents = 2;
    REFUSED(hamdex_files_read(&files, NULL, 0, on_document, on_bad, &made, &read),
            HAMDEX_ERROR_CODE_STOPPED, CALLER, "cancelled by the caller");
    CHECK(made.bad == 1);

    /* The document of the row "b" is stored, and "a" is its own. */
    OK(hamdex_index_remove(made.index, hamdex_text("a"), false, NULL));
    made.documents = made.bad = made.limit = 0;
    OK(hamdex_files_dedup(&files, NULL, on_row, &made, &report, &settings));
    CHECK(report.rows == 5 && report.documents == 4 && report.kept == 4 && report.removed == 0);
    CHECK(report.rejects == 1 && report.blanks == 1 && report.clusters == 0);
    CHECK(report.unverified == 0 && made.documents == 4 && made.bad == 1);
    CHECK(!is(hamdex_settings_verification(settings), "none"));
    hamdex_settings_free(settings);
    files.id_field = hamdex_text("other");
    options.index = made.index;
    OK(hamdex_files_dedup(&files, &options, on_row, &made, &report, &settings));
    CHECK(report.removed == 1 && report.kept == 3);
    CHECK(hamdex_settings_distance(settings) == settings_of_index.distance);
    CHECK(hamdex_settings_advice(settings).len == 0);
    hamdex_settings_free(settings);
    OK(hamdex_files_dedup(&files, &options, NULL, NULL, NULL, NULL));
    made.documents = 0;
    made.limit = 1;
    REFUSED(hamdex_files_dedup(&files, &options, on_row, &made, NULL, NULL),
            HAMDEX_ERROR_CODE_STOPPED, CALLER, "cancelled by the caller");
    CHECK(made.documents == 1);
    options.stop = stop;
    OK(hamdex_files_dedup(&files, &options, NULL, NULL, NULL, NULL));
    hamdex_stop_request(stop);
    made.documents = made.limit = 0;
    REFUSED(hamdex_files_dedup(&files, &options, on_row, &made, NULL, NULL),
            HAMDEX_ERROR_CODE_STOPPED, CALLER, "cancelled by the caller");
    CHECK(made.documents == 0);
    hamdex_stop_free(stop);
    options.stop = NULL;
    options.bits = 32;
    REFUSED(hamdex_files_dedup(&files, &options, on_row, &made, NULL, &settings),
            HAMDEX_ERROR_CODE_WIDTH_MISMATCH, CALLER, "not 32-bit ones");
    CHECK(settings == NULL);
    hamdex_index_close(made.index);

    files.max_bad = hamdex_text("0");
    REFUSED(hamdex_files_dedup(&files, NULL, on_row, &made, &report, NULL),
            HAMDEX_ERROR_CODE_BAD_INPUT, CALLER, "rows are bad");
    files.max_bad = hamdex_text("few");
    REFUSED(hamdex_files_read(&files, NULL, 0, on_document, NULL, &made, NULL),
            HAMDEX_ERROR_CODE_INVALID_ARGUMENT, CALLER, "max_bad is \"few\": expected a number");
    files.format = hamdex_text("xml");
    REFUSED(hamdex_files_choose(&files, 0, &settings), HAMDEX_ERROR_CODE_INVALID_ARGUMENT, CALLER,
            "format is \"xml\", which is unknown");
    options.to = hamdex_text("most");
    REFUSED(hamdex_files_dedup(&files, &options, on_row, &made, NULL, NULL),
            HAMDEX_ERROR_CODE_INVALID_ARGUMENT, CALLER, "to is \"most\"");
    options.to = hamdex_text("");
    options.keep = hamdex_text("last");
    REFUSED(hamdex_files_dedup(&files, &options, on_row, &made, NULL, NULL),
            HAMDEX_ERROR_CODE_INVALID_ARGUMENT, CALLER, "keep is \"last\": expected first");
    files.format = hamdex_text("");
    paths[0] = below(name, sizeof name, directory, "missing");
    REFUSED(hamdex_files_choose(&files, 0, &settings), HAMDEX_ERROR_CODE_IO,
            HAMDEX_FAULT_ENVIRONMENT, "missing");
    REFUSED(hamdex_files_read(&files, NULL, 0, NULL, NULL, NULL, NULL),
            HAMDEX_ERROR_CODE_NULL_ARGUMENT, CALLER, "on_document is NULL");
    REFUSED(hamdex_files_dedup(NULL, NULL, NULL, NULL, NULL, NULL),
            HAMDEX_ERROR_CODE_NULL_ARGUMENT, CALLER, "files is NULL");
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
    CHECK(hamdex_settings_bits(NULL) == 0 && hamdex_settings_distance(NULL) == 0);
    CHECK(hamdex_settings_verification(NULL).len == 0 && hamdex_settings_advice(NULL).len == 0);
    CHECK(hamdex_settings_pipeline(NULL) == NULL);
    hamdex_error_free(NULL);
    hamdex_index_close(NULL);
    hamdex_matches_free(NULL);
    hamdex_answers_free(NULL);
    hamdex_check_free(NULL);
    hamdex_settings_free(NULL);
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
    rows(argv[1]);
    exported(argv[1]);
    nothing();
    return 0;
}
