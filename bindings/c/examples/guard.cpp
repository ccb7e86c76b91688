// A lock that its scope releases: guard URL...
#include "redlatch.h"
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace redlatch {

struct Error : std::runtime_error {
    redlatch_status status;
    explicit Error(redlatch_status status)
        : std::runtime_error(redlatch_last_error()), status(status) {}
};

inline void expect_ok(redlatch_status status) {
    if (status != REDLATCH_OK) throw Error(status);
}

class Guard {
    struct Drop {
        void operator()(redlatch_lock *lock) const { redlatch_drop(lock); }
    };
    std::unique_ptr<redlatch_lock, Drop> lock;

public:
    explicit Guard(redlatch_lock *lock) : lock(lock) {}
    void ensure_held() const { expect_ok(redlatch_ensure_held(lock.get())); }
    void release() { expect_ok(redlatch_release(lock.release())); }
};

class Client {
    struct Free {
        void operator()(redlatch_client *client) const { redlatch_client_free(client); }
    };
    std::unique_ptr<redlatch_client, Free> client;

public:
    Client(const std::vector<std::string> &urls, const redlatch_options &options) {
        std::vector<redlatch_bytes> bytes;
        for (const std::string &url : urls) bytes.push_back({url.data(), url.size()});
        redlatch_client *made = nullptr;
        expect_ok(redlatch_client_new(bytes.data(), bytes.size(), &options, &made));
        client.reset(made);
    }
    Guard lock(const std::string &name, uint64_t ttl) const {
        redlatch_lock *taken = nullptr;
        redlatch_request request{{name.data(), name.size()}, ttl, REDLATCH_FOREVER,
                                 true, false, false, 0};
        expect_ok(redlatch_acquire(client.get(), &request, &taken));
        return Guard(taken);
    }
};

} // namespace redlatch

int main(int argc, char **argv) try {
    redlatch_options options{};
    options.without_restart_guard = true; // only because the nodes of this example have just begun
    redlatch::Client client(std::vector<std::string>(argv + 1, argv + argc), options);
    redlatch::Guard guard = client.lock("orders:42", 10000);
    std::cout << "charging the card\n";
    guard.ensure_held(); // before the step that must not run twice
    std::cout << "marking the order as paid\n";
    guard.release();
} catch (const redlatch::Error &error) {
    std::cerr << "guard: " << error.what() << '\n';
    return 1;
}
