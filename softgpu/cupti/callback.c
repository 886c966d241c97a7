/* The callback API: one subscriber per process. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/cupti/tracer.h"

enum { IDS = 1024 };
_Static_assert((int)CUPTI_DRIVER_TRACE_CBID_SIZE <= IDS && (int)CUPTI_RUNTIME_TRACE_CBID_SIZE <= IDS,
               "numbers of functions");

struct CUpti_Subscriber_st {
    CUpti_CallbackFunc callback;
    void *userdata;
    char name[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN];
    struct CUpti_Subscriber_st *older; /* kept: a callback may still be on its way when it unsubscribes */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(CUpti_SubscriberHandle) subscriber;
static CUpti_SubscriberHandle all;
static atomic_bool enabled[CUPTI_CB_DOMAIN_SIZE][IDS];

static const uint32_t domain_sizes[CUPTI_CB_DOMAIN_SIZE] = {
    [CUPTI_CB_DOMAIN_DRIVER_API] = CUPTI_DRIVER_TRACE_CBID_SIZE,
    [CUPTI_CB_DOMAIN_RUNTIME_API] = CUPTI_RUNTIME_TRACE_CBID_SIZE,
    [CUPTI_CB_DOMAIN_RESOURCE] = CUPTI_CBID_RESOURCE_SIZE,
    [CUPTI_CB_DOMAIN_SYNCHRONIZE] = CUPTI_CBID_SYNCHRONIZE_SIZE,
    [CUPTI_CB_DOMAIN_NVTX] = CUPTI_CBID_NVTX_SIZE, /* accepted; NVTX has no events here */
    [CUPTI_CB_DOMAIN_STATE] = CUPTI_CBID_STATE_SIZE,
};

bool callback_wanted(void)
{
    return atomic_load(&subscriber) != NULL;
}

bool callback_on(CUpti_CallbackDomain domain, uint32_t id)
{
    return atomic_load_explicit(&enabled[domain][id], memory_order_relaxed);
}

void callback_issue(CUpti_CallbackDomain domain, uint32_t id, const void *data)
{
    CUpti_SubscriberHandle s = atomic_load(&subscriber);
    if (!s || !s->callback || !callback_on(domain, id))
        return;
    self.busy++;
    s->callback(s->userdata, domain, id, data);
    self.busy--;
}

void callback_reset(void)
{
    atomic_store(&subscriber, NULL);
    for (size_t d = 0; d < CUPTI_CB_DOMAIN_SIZE; d++)
        for (size_t i = 0; i < IDS; i++)
            atomic_store_explicit(&enabled[d][i], false, memory_order_relaxed);
}

CUptiResult cuptiSupportedDomains(size_t *domainCount, CUpti_DomainTable *domainTable)
{
    static CUpti_CallbackDomain domains[] = {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RUNTIME_API,
                                             CUPTI_CB_DOMAIN_RESOURCE,   CUPTI_CB_DOMAIN_SYNCHRONIZE,
                                             CUPTI_CB_DOMAIN_NVTX,       CUPTI_CB_DOMAIN_STATE};
    if (!domainCount || !domainTable)
        return failed(CUPTI_ERROR_INVALID_PARAMETER);
    *domainCount = sizeof domains / sizeof *domains;
    *domainTable = domains;
    return CUPTI_SUCCESS;
}

/* The name of the subscriber that is there already, for the one that comes too late. */
static void tell_old_name(const CUpti_SubscriberParams *params, const char *name)
{
    if (!params || !params->oldSubscriberName || !params->oldSubscriberSize)
        return;
    strncpy(params->oldSubscriberName, name, params->oldSubscriberSize - 1);
    params->oldSubscriberName[params->oldSubscriberSize - 1] = 0;
}

static void set_name(CUpti_SubscriberHandle s, const char *name)
{
    if (name)
        snprintf(s->name, sizeof s->name, "CUPTI for %s", name);
}

CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle *out, CUpti_CallbackFunc callback, void *userdata,
                              CUpti_SubscriberParams *pParams)
{
    if (!out || (pParams && pParams->structSize < CUpti_SubscriberParams_STRUCT_SIZE))
        return failed(CUPTI_ERROR_INVALID_PARAMETER);
    if (!attach_driver())
        return failed(CUPTI_ERROR_NOT_INITIALIZED);
    pthread_mutex_lock(&lock);
    CUpti_SubscriberHandle s = atomic_load(&subscriber);
    if (s) {
        tell_old_name(pParams, s->name);
        pthread_mutex_unlock(&lock);
        return failed(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    }
    s = calloc(1, sizeof *s);
    if (s) {
        s->callback = callback;
        s->userdata = userdata;
        set_name(s, pParams ? pParams->subscriberName : NULL);
        s->older = all;
        all = s;
        *out = s;
        atomic_store(&subscriber, s);
    }
    pthread_mutex_unlock(&lock);
    return s ? attach_update() : failed(CUPTI_ERROR_OUT_OF_MEMORY);
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *out, CUpti_CallbackFunc callback, void *userdata)
{
    return cuptiSubscribe_v2(out, callback, userdata, NULL);
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle handle)
{
    if (!handle)
        return failed(CUPTI_ERROR_INVALID_PARAMETER);
    pthread_mutex_lock(&lock);
    bool ok = handle == atomic_load(&subscriber);
    if (ok)
        callback_reset();
    pthread_mutex_unlock(&lock);
    return ok ? attach_update() : failed(CUPTI_ERROR_INVALID_PARAMETER);
}

static bool valid(CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain)
{
    return handle && handle == atomic_load(&subscriber) && domain > CUPTI_CB_DOMAIN_INVALID &&
           domain < CUPTI_CB_DOMAIN_SIZE;
}

CUptiResult cuptiGetCallbackState(uint32_t *enable, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain,
                                  CUpti_CallbackId cbid)
{
    if (!enable || !valid(handle, domain) || !cbid || cbid >= domain_sizes[domain])
        return failed(CUPTI_ERROR_INVALID_PARAMETER);
    *enable = callback_on(domain, cbid);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain,
                                CUpti_CallbackId cbid)
{
    if (!valid(handle, domain) || !cbid || cbid >= domain_sizes[domain])
        return failed(CUPTI_ERROR_INVALID_PARAMETER);
    atomic_store_explicit(&enabled[domain][cbid], enable != 0, memory_order_relaxed);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain)
{
    if (!valid(handle, domain))
        return failed(CUPTI_ERROR_INVALID_PARAMETER);
    for (uint32_t i = 1; i < domain_sizes[domain]; i++)
        atomic_store_explicit(&enabled[domain][i], enable != 0, memory_order_relaxed);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle handle)
{
    CUptiResult result = CUPTI_SUCCESS;
    for (int d = CUPTI_CB_DOMAIN_INVALID + 1; d < CUPTI_CB_DOMAIN_SIZE && result == CUPTI_SUCCESS; d++)
        result = cuptiEnableDomain(enable, handle, (CUpti_CallbackDomain)d);
    return result;
}

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid, const char **name)
{
    if (!name)
        return failed(CUPTI_ERROR_INVALID_PARAMETER);
    *name = names_of(domain, cbid);
    return *name ? CUPTI_SUCCESS : failed(CUPTI_ERROR_INVALID_PARAMETER);
}
