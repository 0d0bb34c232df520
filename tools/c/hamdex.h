/*
 * hamdex: an embedded near-duplicate engine. A document is a key and a fingerprint of 32, 64 or
 * 128 bits; a search finds every stored document within so many bits, and no other.
 *
 * Made by cbindgen from tools/c/src; change it there.
 *
 * ERRORS. A function that can fail returns an error object, or NULL when it has succeeded. The
 * error belongs to the caller, who ends it with hamdex_error_free. Results are written only on
 * success, except that pointers to objects are set to NULL first. NULL for an argument that must
 * not be NULL is an error like any other. No panic of the library passes into the caller; it
 * becomes an error of the fault HAMDEX_FAULT_LIBRARY.
 *
 * OWNERSHIP. Objects that a function gives through a pointer to a pointer belong to the caller,
 * who ends each by the function of its name, once. Everything that hamdex_bytes, const char * or
 * a const pointer give as a result belongs to the object it was asked of, and ends with it.
 * Arguments are read until the call returns and not kept.
 *
 * THREADS. Any number of threads may use an index or a pipeline at a time, and read results. The
 * functions that end an object are for when no other thread uses it any more.
 *
 * POINTERS. What a pointer points to must be there, aligned, and as long as its length says.
 */
#ifndef HAMDEX_H
#define HAMDEX_H


#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Marks results that must not be dropped. */
#if defined(__GNUC__) || defined(__clang__)
#define HAMDEX_MUST_USE __attribute__((warn_unused_result))
#else
#define HAMDEX_MUST_USE
#endif

/**
 * Asks a search for the distance that the index was made with.
 */
#define HAMDEX_OWN_DISTANCE UINT32_MAX

/**
 * What went wrong. Numbers stay as they are; later versions may add some.
 */
typedef enum hamdex_error_code {
    /**
     * There was no error object.
     */
    HAMDEX_ERROR_CODE_NONE = 0,
    /**
     * An argument is NULL that must not be.
     */
    HAMDEX_ERROR_CODE_NULL_ARGUMENT = 1,
    /**
     * An argument has no meaning, such as a text that is not UTF-8.
     */
    HAMDEX_ERROR_CODE_INVALID_ARGUMENT = 2,
    /**
     * The library failed within.
     */
    HAMDEX_ERROR_CODE_PANIC = 3,
    /**
     * An error without a number of its own yet; see its fault and message.
     */
    HAMDEX_ERROR_CODE_OTHER = 4,
    /**
     * A fingerprint has more bits than the width.
     */
    HAMDEX_ERROR_CODE_INVALID_FINGERPRINT = 10,
    /**
     * A plan cannot be built as described.
     */
    HAMDEX_ERROR_CODE_INVALID_PLAN = 11,
    /**
     * A plan misses matches within the distance.
     */
    HAMDEX_ERROR_CODE_INCOMPLETE_PLAN = 12,
    /**
     * A distance is above a quarter of the width.
     */
    HAMDEX_ERROR_CODE_INVALID_DISTANCE = 13,
    /**
     * A key is empty or longer than 1024 bytes.
     */
    HAMDEX_ERROR_CODE_INVALID_KEY = 14,
    /**
     * An option has a value outside its range.
     */
    HAMDEX_ERROR_CODE_INVALID_OPTION = 15,
    /**
     * The index holds fingerprints of another width.
     */
    HAMDEX_ERROR_CODE_WIDTH_MISMATCH = 20,
    /**
     * The index was made with other settings.
     */
    HAMDEX_ERROR_CODE_HEADER_MISMATCH = 21,
    /**
     * There is already something where an index was to be made.
     */
    HAMDEX_ERROR_CODE_ALREADY_EXISTS = 22,
    /**
     * There is no index in the directory.
     */
    HAMDEX_ERROR_CODE_NOT_FOUND = 23,
    /**
     * A bulk build was interrupted and has to be resumed or abandoned.
     */
    HAMDEX_ERROR_CODE_BUILD_UNFINISHED = 24,
    /**
     * A write was asked of a handle opened for reading only.
     */
    HAMDEX_ERROR_CODE_READ_ONLY = 25,
    /**
     * Another process or handle has the index open for writing.
     */
    HAMDEX_ERROR_CODE_LOCKED = 30,
    /**
     * The operating system refused a file operation.
     */
    HAMDEX_ERROR_CODE_IO = 31,
    /**
     * The storage engine failed for a reason outside the stored data.
     */
    HAMDEX_ERROR_CODE_STORE = 32,
    /**
     * The index was written in another version of the format.
     */
    HAMDEX_ERROR_CODE_FORMAT_VERSION = 40,
    /**
     * Stored bytes do not decode or contradict each other.
     */
    HAMDEX_ERROR_CODE_CORRUPT = 41,
} hamdex_error_code;

/**
 * Who has to act on an error.
 */
typedef enum hamdex_fault {
    /**
     * The call asked for something that cannot be; change the call.
     */
    HAMDEX_FAULT_CALLER = 1,
    /**
     * Disk, permissions or another process stood in the way; try again later.
     */
    HAMDEX_FAULT_ENVIRONMENT = 2,
    /**
     * Stored bytes are not what was written; restore or rebuild.
     */
    HAMDEX_FAULT_DAMAGE = 3,
    /**
     * The library failed within; close its objects and report it.
     */
    HAMDEX_FAULT_LIBRARY = 4,
} hamdex_fault;

/**
 * What a batch of searches found, one list of matches for each query.
 *
 * It never changes, so that any number of threads may read it. Owned by the caller, who ends it
 * with `hamdex_answers_free`; it outlives the index.
 */
typedef struct hamdex_answers hamdex_answers;

/**
 * What a consistency check found.
 *
 * It never changes, so that any number of threads may read it. Owned by the caller, who ends it
 * with `hamdex_check_free`.
 */
typedef struct hamdex_check hamdex_check;

/**
 * Why a call failed. Owned by the caller, who ends it with `hamdex_error_free`.
 */
typedef struct hamdex_error hamdex_error;

/**
 * An open index of fingerprints of one width.
 *
 * Any number of threads may search and write through one handle at a time. One process and one
 * handle at a time may have an index open for writing. Owned by the caller, who ends it with
 * `hamdex_index_close` when no thread uses it any more.
 */
typedef struct hamdex_index hamdex_index;

/**
 * What a search found, nearest first, then by key.
 *
 * It never changes, so that any number of threads may read it. Owned by the caller, who ends it
 * with `hamdex_matches_free`; it outlives the index.
 */
typedef struct hamdex_matches hamdex_matches;

/**
 * The way from a text to its fingerprint.
 *
 * Any number of threads may use one at a time. Owned by the caller, who ends it with
 * `hamdex_pipeline_free` when no thread uses it any more; an index keeps no pointer to it.
 */
typedef struct hamdex_pipeline hamdex_pipeline;

/**
 * A fingerprint of 32, 64 or 128 bits, in the low bits of a number of 128.
 *
 * What the width leaves over is 0.
 */
typedef struct hamdex_fingerprint {
    /**
     * The upper 64 of 128 bits; 0 for narrower fingerprints.
     */
    uint64_t high;
    /**
     * The lower 64 bits.
     */
    uint64_t low;
} hamdex_fingerprint;

/**
 * Bytes that somebody else owns: a key, a text or a path.
 *
 * As an argument it has to stay as it is until the call returns. As a result it belongs to the
 * object that it was asked of and ends with it. `data` may be NULL where `len` is 0.
 */
typedef struct hamdex_bytes {
    const uint8_t *data;
    size_t len;
} hamdex_bytes;

/**
 * What a new index is made with; begin with `hamdex_options_default()`.
 */
typedef struct hamdex_options {
    /**
     * Width of the fingerprints: 32, 64 or 128. Default = 64.
     */
    uint32_t bits;
    /**
     * Distance of searches that name none, 0 to a quarter of the width. Default = 3.
     */
    uint32_t distance;
    /**
     * The permutation tables, such as "4", "10" or "6x2". Default = empty, which is "4".
     */
    struct hamdex_bytes plan;
    /**
     * The pipeline that makes the fingerprints, whose name is stored. Default = NULL for none.
     */
    const struct hamdex_pipeline *pipeline;
    /**
     * Bytes for block cache and write buffers. Default = 512 MiB.
     */
    size_t memory;
    /**
     * Bytes for holding all fingerprints in memory. Default = 0 for not.
     */
    size_t resident;
} hamdex_options;

/**
 * How an index is opened; begin with `hamdex_open_options_default()`.
 */
typedef struct hamdex_open_options {
    /**
     * Bytes for block cache and write buffers. Default = 512 MiB.
     */
    size_t memory;
    /**
     * Bytes for holding all fingerprints in memory. Default = 0 for not.
     */
    size_t resident;
    /**
     * Whether it is opened for reading only, beside a process that may write. Default = false.
     */
    bool read_only;
    /**
     * Whether a thread of the index folds single entries into runs. Default = false.
     */
    bool background_fold;
} hamdex_open_options;

/**
 * A document to store: a key of 1 to 1024 bytes and a fingerprint.
 */
typedef struct hamdex_document {
    /**
     * The key; a document that is stored takes the place of the one with its key.
     */
    struct hamdex_bytes key;
    /**
     * The fingerprint, of no more bits than the index holds.
     */
    struct hamdex_fingerprint fingerprint;
} hamdex_document;

/**
 * An array of documents, and of the keys in it, that stays as it is until the call returns.
 */
typedef struct hamdex_documents {
    const struct hamdex_document *data;
    size_t len;
} hamdex_documents;

/**
 * What a batch of inserts did.
 */
typedef struct hamdex_batch_report {
    /**
     * Documents whose key was not stored before.
     */
    uint64_t inserted;
    /**
     * Documents that took the place of an older one.
     */
    uint64_t replaced;
} hamdex_batch_report;

/**
 * An array of fingerprints that stays as it is until the call returns.
 */
typedef struct hamdex_fingerprints {
    const struct hamdex_fingerprint *data;
    size_t len;
} hamdex_fingerprints;

/**
 * A stored document within the distance of a query.
 */
typedef struct hamdex_match {
    /**
     * The document's key; it belongs to the matches and ends with them.
     */
    struct hamdex_bytes key;
    /**
     * Its stored fingerprint.
     */
    struct hamdex_fingerprint fingerprint;
    /**
     * How many bits it differs from the query.
     */
    uint32_t distance;
} hamdex_match;

/**
 * Counts and sizes of an index.
 */
typedef struct hamdex_stats {
    /**
     * Stored documents.
     */
    uint64_t documents;
    /**
     * Distinct fingerprints among them.
     */
    uint64_t fingerprints;
    /**
     * Entries of the first table that are not in runs yet.
     */
    uint64_t singles;
    /**
     * Runs of the first table.
     */
    uint64_t runs;
    /**
     * Bytes of the documents' records.
     */
    uint64_t bytes_docs;
    /**
     * Bytes of the postings.
     */
    uint64_t bytes_postings;
    /**
     * Bytes of all permutation tables.
     */
    uint64_t bytes_tables;
} hamdex_stats;

/**
 * What a bulk build did.
 */
typedef struct hamdex_build_report {
    /**
     * Documents in the index now.
     */
    uint64_t documents;
    /**
     * Distinct fingerprints among them.
     */
    uint64_t fingerprints;
    /**
     * Documents of the array that were dropped because an earlier one had their key.
     */
    uint64_t duplicates;
    /**
     * Documents of the index that one of the array took the place of.
     */
    uint64_t replaced;
} hamdex_build_report;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Returns the number of bits that differ.
 */
uint32_t hamdex_distance(struct hamdex_fingerprint a, struct hamdex_fingerprint b);

/**
 * Returns what went wrong; `HAMDEX_ERROR_CODE_NONE` for NULL.
 */
enum hamdex_error_code hamdex_error_code_of(const struct hamdex_error *error);

/**
 * Returns who has to act; the caller for NULL, which is no error.
 */
enum hamdex_fault hamdex_error_fault(const struct hamdex_error *error);

/**
 * Returns the message, in UTF-8 with a NUL behind it; "" for NULL.
 *
 * It belongs to the error object and ends with it.
 */
const char *hamdex_error_message(const struct hamdex_error *error);

/**
 * Ends an error object; nothing happens for NULL.
 */
void hamdex_error_free(struct hamdex_error *error);

/**
 * Returns the library's version, such as "0.1.0"; it is never freed.
 */
const char *hamdex_version(void);

/**
 * Makes a pipeline by the name of a preset, such as "page" or "post".
 *
 * `*pipeline` is NULL after an error.
 */
HAMDEX_MUST_USE
struct hamdex_error *hamdex_pipeline_preset(struct hamdex_bytes name,
                                            struct hamdex_pipeline **pipeline);

/**
 * Makes the pipeline that a descriptor names, as `hamdex_pipeline_descriptor` tells it.
 *
 * Pipelines with tables of the caller's come from the index that holds these; see
 * `hamdex_index_pipeline`. `*pipeline` is NULL after an error.
 */
HAMDEX_MUST_USE
struct hamdex_error *hamdex_pipeline_parse(struct hamdex_bytes descriptor,
                                           struct hamdex_pipeline **pipeline);

/**
 * Makes the pipeline that an index was made with; NULL where it was made with none.
 *
 * It is the caller's to free and outlives the index. `*pipeline` is NULL after an error.
 */
HAMDEX_MUST_USE
struct hamdex_error *hamdex_index_pipeline(const struct hamdex_index *index,
                                           struct hamdex_pipeline **pipeline);

/**
 * Returns the words that name the pipeline; they belong to it. Empty for NULL.
 */
struct hamdex_bytes hamdex_pipeline_descriptor(const struct hamdex_pipeline *pipeline);

/**
 * Makes the fingerprint of a text in UTF-8.
 *
 * `*features` tells how many features stand behind it; below some ten a single word decides. A
 * text without any has no fingerprint: then it is 0, and so is `*fingerprint`, which must not be
 * stored.
 */
HAMDEX_MUST_USE
struct hamdex_error *hamdex_pipeline_fingerprint(const struct hamdex_pipeline *pipeline,
                                                 struct hamdex_bytes text,
                                                 uint32_t bits,
                                                 struct hamdex_fingerprint *fingerprint,
                                                 size_t *features);

/**
 * Ends a pipeline; nothing happens for NULL.
 */
void hamdex_pipeline_free(struct hamdex_pipeline *pipeline);

/**
 * Returns the settings that an index has unless they are changed.
 */
struct hamdex_options hamdex_options_default(void);

/**
 * Returns the settings that an index is opened with unless they are changed.
 */
struct hamdex_open_options hamdex_open_options_default(void);

/**
 * Makes a new, empty index in a directory that is absent or empty.
 *
 * `options` may be NULL for the defaults. `*index` is NULL after an error.
 */
HAMDEX_MUST_USE
struct hamdex_error *hamdex_index_create(struct hamdex_bytes path,
                                         const struct hamdex_options *options,
                                         struct hamdex_index **index);

/**
 * Opens an index that holds fingerprints of so many bits; 0 for whatever it holds.
 *
 * `options` may be NULL for the defaults. `*index` is NULL after an error.
 */
HAMDEX_MUST_USE
struct hamdex_error *hamdex_index_open(struct hamdex_bytes path,
                                       uint32_t bits,
                                       const struct hamdex_open_options *options,
                                       struct hamdex_index **index);

/**
 * Closes an index; what was written survives. Nothing happens for NULL.
 */
void hamdex_index_close(struct hamdex_index *index);

/**
 * Returns the width of the fingerprints in bits; 0 for NULL.
 */
uint32_t hamdex_index_bits(const struct hamdex_index *index);

/**
 * Returns the distance of searches that name none; 0 for NULL.
 */
uint32_t hamdex_index_distance(const struct hamdex_index *index);

/**
 * Counts the stored documents.
 */
HAMDEX_MUST_USE
struct hamdex_error *hamdex_index_len(const struct hamdex_index *index,
                                      uint64_t *documents);

/**
 * Reads the fingerprint of a document.
 *
 * `*found` is false where none is stored under the key, and `*fingerprint` is 0 then. Either may
 * be NULL.
 */
HAMDEX_MUST_USE
struct hamdex_error *hamdex_index_get(const struct hamdex_index *index,
                                      struct hamdex_bytes key,
                                      struct hamdex_fingerprint *fingerprint,
                                      bool *found);

/**
 * Stores a document, or replaces the one with the same key.
 *
 * With `synced` it survives a loss of power when the call returns, else the end of the process.
 * `*replaced` tells whether there was an older one; it may be NULL.
 */
HAMDEX_MUST_USE
struct hamdex_error *hamdex_index_insert(const struct hamdex_index *index,
                                         struct hamdex_bytes key,
                                         struct hamdex_fingerprint fingerprint,
                                         bool synced,
                                         bool *replaced);

/**
 * Stores many documents at once: all of them or, on an error, none.
 *
 * Of documents with equal keys the last one counts. `report` may be NULL.
 */
HAMDEX_MUST_USE
struct hamdex_error *hamdex_index_insert_batch(const struct hamdex_index *index,
                                               struct hamdex_documents documents,
                                               bool synced,
                                               struct hamdex_batch_report *report);

/**
 * Stores a document unless a near-duplicate of it is stored already, in one step.
 *
 * `*near` holds no match when it was stored, else the nearest document that kept it out; it is
 * the caller's to free. An older document of the same key does not count; it is replaced.
 * `distance` may be `HAMDEX_OWN_DISTANCE`. `*near` is NULL after an error.
 */
HAMDEX_MUST_USE
struct hamdex_error *hamdex_index_insert_if_new(const struct hamdex_index *index,
                                                struct hamdex_bytes key,
                                                struct hamdex_fingerprint fingerprint,
                                                uint32_t distance,
                                                bool synced,
                                                struct hamdex_matches **near);

/**
 * Removes a document.
 *
 * `*removed` is false where none was stored under the key; it may be NULL.
 */
HAMDEX_MUST_USE
struct hamdex_error *hamdex_index_remove(const struct hamdex_index *index,
                                         struct hamdex_bytes key,
                                         bool synced,
                                         bool *removed);

/**
 * Finds every document within the distance, nearest first, then by key.
 *
 * `distance` goes from 0 to a quarter of the width, or is `HAMDEX_OWN_DISTANCE`. `limit` keeps so
 * many of the nearest; 0 keeps all. `*matches` is the caller's to free, and NULL after an error.
 */
HAMDEX_MUST_USE
struct hamdex_error *hamdex_index_search(const struct hamdex_index *index,
                                         struct hamdex_fingerprint fingerprint,
                                         uint32_t distance,
                                         size_t limit,
                                         struct hamdex_matches **matches);

/**
 * Answers many queries on all threads; answers come in the order of the queries.
 *
 * `distance` and `limit` are those of every query, as for `hamdex_index_search`. `*answers` is
 * the caller's to free, and NULL after an error.
 */
HAMDEX_MUST_USE
struct hamdex_error *hamdex_index_search_batch(const struct hamdex_index *index,
                                               struct hamdex_fingerprints fingerprints,
                                               uint32_t distance,
                                               size_t limit,
                                               struct hamdex_answers **answers);

/**
 * Returns how many matches there are; 0 for NULL.
 */
size_t hamdex_matches_len(const struct hamdex_matches *matches);

/**
 * Returns a match by its number from 0.
 *
 * Behind the last one, and for NULL, its key has no bytes and its distance is `UINT32_MAX`.
 */
struct hamdex_match hamdex_matches_at(const struct hamdex_matches *matches, size_t at);

/**
 * Ends matches that a search has given; nothing happens for NULL.
 *
 * Not for those of a batch, which end with their answers.
 */
void hamdex_matches_free(struct hamdex_matches *matches);

/**
 * Returns how many queries were answered; 0 for NULL.
 */
size_t hamdex_answers_len(const struct hamdex_answers *answers);

/**
 * Returns the matches of a query by its number from 0; they belong to the answers.
 *
 * NULL behind the last one, and for NULL.
 */
const struct hamdex_matches *hamdex_answers_at(const struct hamdex_answers *answers, size_t at);

/**
 * Ends answers and the matches in them; nothing happens for NULL.
 */
void hamdex_answers_free(struct hamdex_answers *answers);

/**
 * Counts entries and bytes by reading everything once.
 */
HAMDEX_MUST_USE
struct hamdex_error *hamdex_index_stats(const struct hamdex_index *index,
                                        struct hamdex_stats *stats);

/**
 * Reads everything and compares every table and posting with the documents.
 *
 * Problems are no error; they are in `*check`, which is the caller's to free, and NULL after an
 * error.
 */
HAMDEX_MUST_USE
struct hamdex_error *hamdex_index_check(const struct hamdex_index *index,
                                        struct hamdex_check **check);

/**
 * Returns how many documents were read; 0 for NULL.
 */
uint64_t hamdex_check_documents(const struct hamdex_check *check);

/**
 * Returns how many problems there are; 0 for NULL.
 */
uint64_t hamdex_check_problems(const struct hamdex_check *check);

/**
 * Returns a problem's words by its number from 0; they belong to the check.
 *
 * The first thousand are kept. Behind the last one, and for NULL, there are no bytes.
 */
struct hamdex_bytes hamdex_check_problem(const struct hamdex_check *check, size_t at);

/**
 * Ends a check; nothing happens for NULL.
 */
void hamdex_check_free(struct hamdex_check *check);

/**
 * Writes what is in memory to table files; the log already holds it.
 */
HAMDEX_MUST_USE struct hamdex_error *hamdex_index_flush(const struct hamdex_index *index);

/**
 * Folds every single entry into runs, which makes searches faster and the index smaller.
 *
 * `*folded` tells how many there were, over all tables; it may be NULL. Searches and writes go
 * on meanwhile.
 */
HAMDEX_MUST_USE
struct hamdex_error *hamdex_index_fold(const struct hamdex_index *index,
                                       uint64_t *folded);

/**
 * Makes an index of an array of documents, or adds them to the one that is there.
 *
 * Nobody may have it open meanwhile. `options` are those of a new index, and have to fit one that
 * is there; NULL stands for the defaults. On an error an index that was there has not changed, and
 * one that was to be made stays behind empty. `report` may be NULL.
 */
HAMDEX_MUST_USE
struct hamdex_error *hamdex_build(struct hamdex_bytes path,
                                  const struct hamdex_options *options,
                                  struct hamdex_documents documents,
                                  struct hamdex_build_report *report);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

/* Lends the bytes of a string, without its NUL; no bytes for NULL. */
static inline hamdex_bytes hamdex_text(const char *text) {
    hamdex_bytes bytes;
    bytes.data = (const uint8_t *)text;
    bytes.len = text ? strlen(text) : 0;
    return bytes;
}

/* Makes a fingerprint of up to 64 bits. */
static inline hamdex_fingerprint hamdex_fingerprint_of(uint64_t bits) {
    hamdex_fingerprint fingerprint;
    fingerprint.high = 0;
    fingerprint.low = bits;
    return fingerprint;
}

#endif /* HAMDEX_H */
