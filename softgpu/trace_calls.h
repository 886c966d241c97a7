/* trace_calls.h - rows of generate-trace as wrappers. Before it is included: TRACE_SIDE, TRACE_RESULT (type of the
 * result), TRACE_KERNEL_NAME, and trace_hooks(), which gives the watcher's table or NULL. Names of
 * variables end in _ because the headers' parameters have all other names. */
#define CALL(name, parameters, arguments, members)                                                                     \
    TRACE_RESULT untraced_##name parameters;                                                                           \
    __attribute__((visibility("default"))) TRACE_RESULT name parameters;                                               \
    TRACE_RESULT name parameters                                                                                       \
    {                                                                                                                  \
        const struct trace_hooks *hooks_ = trace_hooks();                                                              \
        if (__builtin_expect(!hooks_, 1))                                                                              \
            return untraced_##name arguments;                                                                          \
        static struct trace_site site_ = {#name, TRACE_SIDE, 0};                                                       \
        const struct {                                                                                                 \
            members                                                                                                    \
        } params_ = {TRACE_LIST arguments};                                                                            \
        struct trace_call call_ = {.site = &site_, .params = &params_, .kernel_name = TRACE_KERNEL_NAME};              \
        hooks_->enter(&call_);                                                                                         \
        TRACE_RESULT result_ = untraced_##name arguments;                                                              \
        call_.result = (int)result_;                                                                                   \
        hooks_->exit(&call_);                                                                                          \
        return result_;                                                                                                \
    }
#define CALL0(name)                                                                                                    \
    TRACE_RESULT untraced_##name(void);                                                                                \
    __attribute__((visibility("default"))) TRACE_RESULT name(void);                                                    \
    TRACE_RESULT name(void)                                                                                            \
    {                                                                                                                  \
        const struct trace_hooks *hooks_ = trace_hooks();                                                              \
        if (__builtin_expect(!hooks_, 1))                                                                              \
            return untraced_##name();                                                                                  \
        static struct trace_site site_ = {#name, TRACE_SIDE, 0};                                                       \
        struct trace_call call_ = {.site = &site_, .kernel_name = TRACE_KERNEL_NAME};                                  \
        hooks_->enter(&call_);                                                                                         \
        TRACE_RESULT result_ = untraced_##name();                                                                      \
        call_.result = (int)result_;                                                                                   \
        hooks_->exit(&call_);                                                                                          \
        return result_;                                                                                                \
    }
#define TRACE_LIST(...) __VA_ARGS__
