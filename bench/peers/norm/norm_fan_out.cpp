// A file over NORM (RFC 5740) to a fixed number of receivers, as the peer of a measurement; the library is NRL's own.
//
//   norm-fan-out receive GROUP PORT NODE DIRECTORY        says `ready`, then prints an account once the file stands
//   norm-fan-out send GROUP PORT RECEIVERS RATE_BPS FILE  ends when all receivers, nodes 2 and up, acknowledged the file
//
// A fixed rate without congestion control, which would spend seconds at its start rate. Parity is sent on demand only.
#include <normApi.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <unistd.h>

namespace {

constexpr NormNodeId SENDER = 1;
constexpr unsigned BUFFER_BYTES = 16u << 20;
constexpr UINT16 SEGMENT_BYTES = 1400;
// Blocks of 64 packets with 16 of parity: what the library's own programs use.
constexpr UINT16 DATA_SEGMENTS = 64, PARITY_SEGMENTS = 16;
// The round trip of a bridge; the library would start with half a second and wait that long for requests.
constexpr double ROUND_TRIP_S = 0.005;
constexpr unsigned SEND_PATIENCE_S = 180;

[[noreturn]] void fail(const std::string &why) {
    std::fprintf(stderr, "norm-fan-out: %s\n", why.c_str());
    std::exit(1);
}

void say(const char *line) {
    std::printf("%s\n", line);
    std::fflush(stdout);
}

NormSessionHandle session_of(NormInstanceHandle instance, const char *group, const char *port, NormNodeId node) {
    NormSessionHandle session = NormCreateSession(instance, group, UINT16(std::atoi(port)), node);
    if (session == NORM_SESSION_INVALID) fail("the session can't be created");
    NormSetMulticastInterface(session, "eth0");
    NormSetGrttEstimate(session, ROUND_TRIP_S);
    return session;
}

int receive(const char *group, const char *port, const char *node, const char *directory) {
    NormInstanceHandle instance = NormCreateInstance(false);
    NormSetCacheDirectory(instance, directory);
    NormSessionHandle session = session_of(instance, group, port, NormNodeId(std::atoi(node)));
    if (!NormStartReceiver(session, BUFFER_BYTES)) fail("the receiver can't be started");
    NormSetRxSocketBuffer(session, BUFFER_BYTES);
    // Goes on to answer the sender until whoever started it closes its stdin.
    std::thread([] {
        char byte;
        while (read(STDIN_FILENO, &byte, 1) > 0) {}
        _exit(0);
    }).detach();
    say("ready");
    NormEvent event;
    while (NormGetNextEvent(instance, &event, true)) {
        if (event.type == NORM_RX_OBJECT_ABORTED) fail("the file was given up");
        if (event.type != NORM_RX_OBJECT_COMPLETED) continue;
        if (!NormFileRename(event.object, (std::string(directory) + "/received").c_str())) fail("no rename");
        say("{\"complete\": true}");
    }
    return 0;
}

int send(const char *group, const char *port, int receivers, double rate_bps, const char *file) {
    NormInstanceHandle instance = NormCreateInstance(false);
    NormSessionHandle session = session_of(instance, group, port, SENDER);
    NormSetCongestionControl(session, false);
    NormSetTxRate(session, rate_bps);
    for (int number = 0; number < receivers; ++number) NormAddAckingNode(session, SENDER + 1 + NormNodeId(number));
    if (!NormStartSender(session, 1, BUFFER_BYTES, SEGMENT_BYTES, DATA_SEGMENTS, PARITY_SEGMENTS)) {
        fail("the sender can't be started");
    }
    NormSetTxSocketBuffer(session, BUFFER_BYTES);
    NormObjectHandle object = NormFileEnqueue(session, file, "received", 8);
    if (object == NORM_OBJECT_INVALID || !NormSetWatermark(session, object)) fail("the file can't be sent");
    alarm(SEND_PATIENCE_S);
    NormEvent event;
    while (NormGetNextEvent(instance, &event, true)) {
        if (event.type != NORM_TX_WATERMARK_COMPLETED) continue;
        if (NormGetAckingStatus(session, NORM_NODE_ANY) == NORM_ACK_SUCCESS) return 0;
        // A receiver that is still asking for repairs has not answered in time: ask again.
        NormResetWatermark(session);
    }
    return 1;
}

}  // namespace

int main(int count, char **words) {
    const std::string role = count > 1 ? words[1] : "";
    if (role == "receive" && count == 6) return receive(words[2], words[3], words[4], words[5]);
    if (role == "send" && count == 7) {
        return send(words[2], words[3], std::atoi(words[4]), std::atof(words[5]), words[6]);
    }
    fail("usage: norm-fan-out receive GROUP PORT NODE DIRECTORY | send GROUP PORT RECEIVERS RATE_BPS FILE");
}
