/* Deduplicates files: the arguments are paths, and words such as keep=longest for the options of the
 * command line. Every row becomes a line, and the report or the error the last one. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "hamdex.h"

static void print_place(const hamdex_place *place) {
    printf("\t%.*s", (int)place->file.len, (const char *)place->file.data);
    if (place->row > 0 && place->ordinal != UINT64_MAX) {
        printf(":%" PRIu64, place->row);
    }
}

static int print_row(void *context, const hamdex_row *row) {
    static const char *fates[] = {"", "kept", "blank", "duplicate", "stored", "repeat", "bad"};
    (void)context;
    printf("%s", fates[row->fate]);
    print_place(&row->place);
    print_place(&row->kept_place);
    printf("\t%.*s\t%d\t%.4f\t%" PRIu32 "\t%.*s\n", (int)row->stored_key.len,
           (const char *)row->stored_key.data, (int)row->distance, row->similarity, row->cluster,
           (int)row->reason.len, (const char *)row->reason.data);
    return 0;
}

/* Returns the value of an option, if the word is this one. */
static bool option(const char *word, const char *name, hamdex_bytes *value) {
    size_t len = strlen(name);
    bool is_this = strncmp(word, name, len) == 0 && word[len] == '=';
    if (is_this) {
        *value = hamdex_text(word + len + 1);
    }
    return is_this;
}

int main(int words, char **word) {
    hamdex_files files = hamdex_files_default();
    hamdex_dedup_options options = hamdex_dedup_options_default();
    hamdex_open_options opening = hamdex_open_options_default();
    hamdex_index *index = NULL;
    hamdex_bytes *paths = calloc((size_t)words, sizeof *paths);
    hamdex_bytes value = hamdex_text("");
    hamdex_dedup_report report;
    hamdex_settings *settings = NULL;
    hamdex_bytes verification, descriptor;
    hamdex_error *error;
    int at;

    if (paths == NULL) {
        return 1;
    }
    files.paths.data = paths;
    for (at = 1; at < words; at++) {
        if (option(word[at], "against", &value)) {
            opening.read_only = true;
            error = hamdex_index_open(value, 0, &opening, &index);
            if (error != NULL) {
                fprintf(stderr, "%s\n", hamdex_error_message(error));
                return 1;
            }
            options.index = index;
        } else if (option(word[at], "as-documents", &value)) {
            files.as_documents = true;
        } else if (option(word[at], "hidden", &value)) {
            files.hidden = true;
        } else if (option(word[at], "drop-empty", &value)) {
            options.drop_empty = true;
        } else if (!option(word[at], "text-field", &files.text_field) &&
                   !option(word[at], "max-bad", &files.max_bad) &&
                   !option(word[at], "keep", &options.keep) &&
                   !option(word[at], "verify", &options.verification) &&
                   !option(word[at], "unique-by", &options.unique_by) &&
                   !option(word[at], "to", &options.to) &&
                   !option(word[at], "tmp", &options.tmp)) {
            paths[files.paths.len++] = hamdex_text(word[at]);
        }
    }
    error = hamdex_files_dedup(&files, &options, print_row, NULL, &report, &settings);
    if (error != NULL) {
        printf("error %d\t%s\n", hamdex_error_code_of(error), hamdex_error_message(error));
        hamdex_error_free(error);
    } else {
        verification = hamdex_settings_verification(settings);
        descriptor = hamdex_pipeline_descriptor(hamdex_settings_pipeline(settings));
        printf("report\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64
               "\t%" PRIu64 "\t%" PRIu32 "\t%" PRIu32 "\t%.*s\t%.*s\n",
               report.rows, report.documents, report.kept, report.removed, report.blanks,
               report.clusters, report.rejects, hamdex_settings_bits(settings),
               hamdex_settings_distance(settings), (int)verification.len,
               (const char *)verification.data, (int)descriptor.len, (const char *)descriptor.data);
    }
    hamdex_settings_free(settings);
    hamdex_index_close(index);
    free(paths);
    return 0;
}
