// hamdex.h in C++: objects that free themselves, errors as exceptions.

#include <cstdlib>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "hamdex.h"

namespace {

template <auto End> struct Ending {
    template <typename T> void operator()(T *object) const { End(object); }
};

using Index = std::unique_ptr<hamdex_index, Ending<hamdex_index_close>>;
using Matches = std::unique_ptr<hamdex_matches, Ending<hamdex_matches_free>>;
using Error = std::unique_ptr<hamdex_error, Ending<hamdex_error_free>>;

void check(bool so, const char *what) {
    if (!so) {
        throw std::logic_error(what);
    }
}

// Throws the error of a failed call.
void done(hamdex_error *failure) {
    Error error(failure);
    if (error) {
        throw std::runtime_error(hamdex_error_message(error.get()));
    }
}

hamdex_bytes bytes(std::string_view text) {
    return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

Index create(const std::string &path) {
    hamdex_options options = hamdex_options_default();
    options.memory = std::size_t{16} << 20;
    hamdex_index *index = nullptr;
    done(hamdex_index_create(bytes(path), &options, &index));
    return Index(index);
}

std::vector<std::string> near(const Index &index, uint64_t fingerprint, uint32_t distance) {
    hamdex_matches *found = nullptr;
    done(hamdex_index_search(index.get(), hamdex_fingerprint_of(fingerprint), distance, 0, &found));
    Matches matches(found);
    std::vector<std::string> keys;
    for (std::size_t at = 0; at < hamdex_matches_len(matches.get()); ++at) {
        const hamdex_bytes key = hamdex_matches_at(matches.get(), at).key;
        keys.emplace_back(reinterpret_cast<const char *>(key.data), key.len);
    }
    return keys;
}

void tour(const std::string &directory) {
    const std::string path = directory + "/cpp";
    {
        const Index index = create(path);
        std::vector<std::thread> writers;
        for (uint64_t writer = 0; writer < 4; ++writer) {
            writers.emplace_back([&index, writer] {
                for (uint64_t at = 0; at < 50; ++at) {
                    const std::string key = std::to_string(writer) + "-" + std::to_string(at);
                    done(hamdex_index_insert(index.get(), bytes(key),
                                             hamdex_fingerprint_of(writer << 32 | at), false, nullptr));
                }
            });
        }
        for (std::thread &writer : writers) {
            writer.join();
        }
        check(near(index, 3, 0).size() == 1, "one document equals the query");
        check(near(index, uint64_t{1} << 32 | 7, 0) == std::vector<std::string>{"1-7"}, "its key");
        check(near(index, 0, 16).size() == 200, "all of them are near enough");
        bool thrown = false;
        try {
            create(path);
        } catch (const std::runtime_error &error) {
            thrown = std::string(error.what()).find("already holds") != std::string::npos;
        }
        check(thrown, "an index is not made over another one");
    }
    hamdex_index *opened = nullptr;
    done(hamdex_index_open(bytes(path), 64, nullptr, &opened));
    const Index index(opened);
    uint64_t documents = 0;
    done(hamdex_index_len(index.get(), &documents));
    check(documents == 200, "what was written is there when the index is opened again");
}

} // namespace

int main(int argc, char **argv) {
    try {
        check(argc == 2, "one argument, a directory");
        tour(argv[1]);
        return EXIT_SUCCESS;
    } catch (const std::exception &failure) {
        std::cerr << "not so: " << failure.what() << '\n';
        return EXIT_FAILURE;
    }
}
