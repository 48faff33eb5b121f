/* SPDX-License-Identifier: Apache-2.0 */
#include "http/listen.h"

#include <errno.h>
#include <gpuledger/error.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Bursts of binds open connections faster than threads for them can be started. */
#define BACKLOG 1024

static int socket_open(const struct addrinfo *address)
{
    const int on = 1;
    const int off = 0;
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (address->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind(fd, address->ai_addr, address->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
        int saved_errno = errno;

        close(fd);
        errno = saved_errno;
        return -1;
    }
    return fd;
}

static int host_open(const char *host, uint16_t port, GError **error)
{
    const struct addrinfo hints = {
        .ai_flags = AI_PASSIVE | AI_NUMERICSERV,
        .ai_socktype = SOCK_STREAM,
    };
    struct addrinfo *addresses = NULL;
    char service[8];
    int fd = -1;
    int status;

    g_snprintf(service, sizeof(service), "%u", port);
    status = getaddrinfo(host, service, &hints, &addresses);
    if (status != 0) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_IO,
                    "listen address '%s' cannot be resolved: %s", host, gai_strerror(status));
        return -1;
    }
    for (const struct addrinfo *address = addresses; address && fd < 0; address = address->ai_next)
        fd = socket_open(address);
    if (fd < 0)
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_IO,
                    strchr(host, ':') ? "cannot listen on '[%s]:%u': %s"
                                      : "cannot listen on '%s:%u': %s",
                    host, port, g_strerror(errno));
    freeaddrinfo(addresses);
    return fd;
}

int listen_open(const char *host, uint16_t port, GError **error)
{
    g_autoptr(GError) no_ipv6 = NULL;
    int fd;

    if (host[0] != '\0')
        return host_open(host, port, error);
    fd = host_open("::", port, &no_ipv6);
    return fd >= 0 ? fd : host_open("0.0.0.0", port, error);
}

union address {
    struct sockaddr any;
    struct sockaddr_in ipv4;
    struct sockaddr_in6 ipv6;
};

/* All zero if the kernel does not say. */
static union address address_of(int fd)
{
    union address address = {0};
    socklen_t length = sizeof(address);

    if (getsockname(fd, &address.any, &length) < 0)
        return (union address){0};
    return address;
}

uint16_t listen_port(int fd)
{
    const union address address = address_of(fd);

    return ntohs(address.any.sa_family == AF_INET6 ? address.ipv6.sin6_port
                                                   : address.ipv4.sin_port);
}

bool listen_is_local(int fd)
{
    const union address address = address_of(fd);

    if (address.any.sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&address.ipv6.sin6_addr);
    return address.any.sa_family == AF_INET &&
           ntohl(address.ipv4.sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
}
