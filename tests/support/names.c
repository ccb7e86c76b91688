/* Answers for the names below ".test" with what the file says that REDLATCH_NAMES names: the first
   line is how many milliseconds a lookup takes, each other line an address. No address: no such
   name. Other names are looked up as ever. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int lookup(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int getaddrinfo(const char *restrict host, const char *restrict service,
                const struct addrinfo *restrict hints, struct addrinfo **restrict found) {
    lookup *ask = (lookup *)dlsym(RTLD_NEXT, "getaddrinfo");
    const char *path = getenv("REDLATCH_NAMES");
    size_t length = host ? strlen(host) : 0;
    if (!path || length < 5 || strcmp(host + length - 5, ".test") != 0)
        return ask(host, service, hints, found);
    FILE *file = fopen(path, "re");
    char line[256];
    if (!file || !fgets(line, sizeof line, file)) return EAI_FAIL;
    long millis = atol(line);
    struct timespec pause = {millis / 1000, millis % 1000 * 1000000};
    nanosleep(&pause, NULL);
    struct addrinfo **end = found;
    *end = NULL;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        if (ask(line, service, hints, end) != 0) continue;
        while (*end) end = &(*end)->ai_next;
    }
    fclose(file);
    return *found ? 0 : EAI_NONAME;
}
