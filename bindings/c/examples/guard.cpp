// Classes round the functions of C: a lock that its scope releases. guard URL...
#include <iostream>
#include <memory>
#include <redlatch.h>
#include <stdexcept>
#include <string>
#include <vector>

namespace redlatch {

struct Error : std::runtime_error {
    redlatch_status status;
    explicit Error(redlatch_status code)
        : std::runtime_error(redlatch_last_error()), status(code) {}
};

inline void check(redlatch_status status) {
    if (status != REDLATCH_OK) throw Error(status);
}

class Guard {
    struct Drop {
        void operator()(redlatch_guard *guard) const { redlatch_drop(&guard); }
    };
    std::unique_ptr<redlatch_guard, Drop> guard;

public:
    explicit Guard(redlatch_guard *taken) : guard(taken) {}
    void ensure_held() const { check(redlatch_ensure_held(guard.get())); }
    // `guard` is null afterwards, whatever comes of it.
    void release() {
        redlatch_guard *released = guard.release();
        check(redlatch_release(&released));
    }
};

class Client {
    struct Free {
        void operator()(redlatch_client *client) const { redlatch_client_free(&client); }
    };
    std::unique_ptr<redlatch_client, Free> client;

public:
    explicit Client(const std::vector<std::string> &urls) {
        std::vector<redlatch_bytes> bytes;
        for (const std::string &url : urls) bytes.push_back({url.data(), url.size()});
        redlatch_client *made = nullptr;
        check(redlatch_client_new(bytes.data(), bytes.size(), nullptr, &made));
        client.reset(made);
    }
    // Throws an Error with the status REDLATCH_HELD if others hold it for all that time.
    Guard lock(const std::string &name, uint64_t ttl_ms, uint64_t wait_ms) const {
        redlatch_guard *taken = nullptr;
        check(redlatch_lock(client.get(), name.c_str(), ttl_ms, wait_ms, &taken));
        return Guard(taken);
    }
};

} // namespace redlatch

int main(int argc, char **argv) try {
    redlatch::Client client(std::vector<std::string>(argv + 1, argv + argc));
    redlatch::Guard guard = client.lock("orders:42", 10000, 5000);
    std::cout << "charging the card\n";
    guard.ensure_held(); // before the step that must not run twice
    std::cout << "marking the order as paid\n";
    guard.release();
} catch (const redlatch::Error &error) {
    std::cerr << "guard: " << error.what() << '\n';
    return 1;
}
