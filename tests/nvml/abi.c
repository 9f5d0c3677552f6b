/* SPDX-License-Identifier: MIT */
/* abi.c - is what lbrun assumes of NVML what NVIDIA's own nvml.h says? Compiled, not run (make
 * check-nvml): every function that common/gpu/nvml.c looks up by its type, every structure member
 * by member, every number. */
#include <nvml.h>

#include <stddef.h>

#include "common/gpu/nvml.h"
#include "common/gpu/nvml_abi.h"

#define SAME(a, b) _Static_assert((long long)(a) == (long long)(b), #a " is " #b)
#define PLACED(ours, member, theirs, its) \
	SAME(offsetof(ours, member), offsetof(theirs, its)); \
	SAME(sizeof(((ours *)0)->member), sizeof(((theirs *)0)->its))
#define TYPED(function, ...) \
	_Static_assert(_Generic(&(function), nvmlReturn_t(*)(__VA_ARGS__) : 1, default : 0), \
		       #function " takes something else")

SAME(sizeof(nvmlReturn_t), sizeof(int));
SAME(sizeof(nvmlClockType_t), sizeof(int));
SAME(sizeof(nvmlTemperatureSensors_t), sizeof(int));
SAME(sizeof(nvmlMemoryErrorType_t), sizeof(int));
SAME(sizeof(nvmlEccCounterType_t), sizeof(int));
SAME(sizeof(nvmlNvLinkErrorCounter_t), sizeof(int));
SAME(sizeof(nvmlEventSet_t), sizeof(void *));
SAME(NVML_SUCCESS, 0);

SAME(sizeof(struct nvml_use), sizeof(nvmlUtilization_t));
PLACED(struct nvml_use, gpu, nvmlUtilization_t, gpu);
PLACED(struct nvml_use, memory, nvmlUtilization_t, memory);
SAME(sizeof(struct nvml_memory), sizeof(nvmlMemory_t));
PLACED(struct nvml_memory, total, nvmlMemory_t, total);
PLACED(struct nvml_memory, free, nvmlMemory_t, free);
PLACED(struct nvml_memory, used, nvmlMemory_t, used);
SAME(sizeof(struct nvml_event), sizeof(nvmlEventData_t));
PLACED(struct nvml_event, device, nvmlEventData_t, device);
PLACED(struct nvml_event, type, nvmlEventData_t, eventType);
PLACED(struct nvml_event, data, nvmlEventData_t, eventData);
PLACED(struct nvml_event, gpu_instance, nvmlEventData_t, gpuInstanceId);
PLACED(struct nvml_event, compute_instance, nvmlEventData_t, computeInstanceId);
SAME(sizeof(struct nvml_pci), sizeof(nvmlPciInfo_t));
PLACED(struct nvml_pci, domain, nvmlPciInfo_t, domain);
PLACED(struct nvml_pci, bus, nvmlPciInfo_t, bus);
PLACED(struct nvml_pci, device, nvmlPciInfo_t, device);
SAME(sizeof(struct nvml_field), sizeof(nvmlFieldValue_t));
PLACED(struct nvml_field, id, nvmlFieldValue_t, fieldId);
PLACED(struct nvml_field, scope, nvmlFieldValue_t, scopeId);
PLACED(struct nvml_field, timestamp, nvmlFieldValue_t, timestamp);
PLACED(struct nvml_field, latency_us, nvmlFieldValue_t, latencyUsec);
PLACED(struct nvml_field, type, nvmlFieldValue_t, valueType);
PLACED(struct nvml_field, status, nvmlFieldValue_t, nvmlReturn);
PLACED(struct nvml_field, value, nvmlFieldValue_t, value);
PLACED(struct nvml_field, value.number, nvmlFieldValue_t, value.uiVal);

SAME(VALUE_UNSIGNED, NVML_VALUE_TYPE_UNSIGNED_INT);
#ifdef NVML_FI_DEV_GET_GPU_RECOVERY_ACTION /* since 12.8 */
SAME(FIELD_RECOVERY, NVML_FI_DEV_GET_GPU_RECOVERY_ACTION);
SAME(RECOVERY_RESET, NVML_GPU_RECOVERY_ACTION_GPU_RESET);
SAME(RECOVERY_REBOOT, NVML_GPU_RECOVERY_ACTION_NODE_REBOOT);
SAME(RECOVERY_DRAIN, NVML_GPU_RECOVERY_ACTION_DRAIN_P2P);
#endif
SAME(SM_CLOCK, NVML_CLOCK_SM);
SAME(GPU_SENSOR, NVML_TEMPERATURE_GPU);
SAME(ECC_CORRECTED, NVML_MEMORY_ERROR_TYPE_CORRECTED);
SAME(ECC_UNCORRECTED, NVML_MEMORY_ERROR_TYPE_UNCORRECTED);
SAME(ECC_VOLATILE, NVML_VOLATILE_ECC);
SAME(XID_EVENT, nvmlEventTypeXidCriticalError);
SAME(LINK_COUNTERS, NVML_NVLINK_ERROR_DL_CRC_DATA + 1);
SAME(NVML_NVLINK_ERROR_DL_REPLAY + NVML_NVLINK_ERROR_DL_RECOVERY + NVML_NVLINK_ERROR_DL_CRC_FLIT,
     0 + 1 + 2);
_Static_assert(LINKS >= NVML_NVLINK_MAX_LINKS, "there are more links");
_Static_assert(NVML_UUID_BYTES >= NVML_DEVICE_UUID_V2_BUFFER_SIZE, "UUIDs are longer");
SAME(THROTTLE_POWER,
     nvmlClocksThrottleReasonSwPowerCap | nvmlClocksThrottleReasonHwPowerBrakeSlowdown);
SAME(THROTTLE_THERMAL,
     nvmlClocksThrottleReasonSwThermalSlowdown | nvmlClocksThrottleReasonHwThermalSlowdown);
SAME(THROTTLE_HARDWARE, nvmlClocksThrottleReasonHwSlowdown);

TYPED(nvmlInit_v2, void);
TYPED(nvmlShutdown, void);
TYPED(nvmlDeviceGetCount_v2, unsigned *);
TYPED(nvmlDeviceGetHandleByIndex_v2, unsigned, nvmlDevice_t *);
TYPED(nvmlDeviceGetUUID, nvmlDevice_t, char *, unsigned);
TYPED(nvmlDeviceGetUtilizationRates, nvmlDevice_t, nvmlUtilization_t *);
TYPED(nvmlDeviceGetMemoryInfo, nvmlDevice_t, nvmlMemory_t *);
TYPED(nvmlDeviceGetPowerUsage, nvmlDevice_t, unsigned *);
TYPED(nvmlDeviceGetClockInfo, nvmlDevice_t, nvmlClockType_t, unsigned *);
TYPED(nvmlDeviceGetCurrentClocksThrottleReasons, nvmlDevice_t, unsigned long long *);
#ifdef nvmlClocksEventReasonGpuIdle /* since 12.2 */
TYPED(nvmlDeviceGetCurrentClocksEventReasons, nvmlDevice_t, unsigned long long *);
#endif
TYPED(nvmlDeviceGetTemperature, nvmlDevice_t, nvmlTemperatureSensors_t, unsigned *);
TYPED(nvmlDeviceGetTotalEccErrors, nvmlDevice_t, nvmlMemoryErrorType_t, nvmlEccCounterType_t,
      unsigned long long *);
TYPED(nvmlDeviceGetNvLinkErrorCounter, nvmlDevice_t, unsigned, nvmlNvLinkErrorCounter_t,
      unsigned long long *);
TYPED(nvmlDeviceGetRemappedRows, nvmlDevice_t, unsigned *, unsigned *, unsigned *, unsigned *);
TYPED(nvmlDeviceGetPciInfo_v3, nvmlDevice_t, nvmlPciInfo_t *);
TYPED(nvmlDeviceGetFieldValues, nvmlDevice_t, int, nvmlFieldValue_t *);
TYPED(nvmlEventSetCreate, nvmlEventSet_t *);
TYPED(nvmlDeviceRegisterEvents, nvmlDevice_t, unsigned long long, nvmlEventSet_t);
TYPED(nvmlEventSetWait_v2, nvmlEventSet_t, nvmlEventData_t *, unsigned);
