/* SPDX-License-Identifier: MIT */
/* cudnn_api.h - the few functions of cuDNN that are used, opened at run time. */
#ifndef KERNELS_CUDA_CUDNN_API_H
#define KERNELS_CUDA_CUDNN_API_H

#include <stdbool.h>
#include <stddef.h>

#include <cuda_runtime_api.h>
#include <cudnn.h>

struct cudnn {
	void *library;
	cudnnStatus_t (*create_handle)(cudnnHandle_t *handle);
	cudnnStatus_t (*destroy_handle)(cudnnHandle_t handle);
	cudnnStatus_t (*set_stream)(cudnnHandle_t handle, cudaStream_t stream);
	size_t (*version)(void);
	const char *(*error_string)(cudnnStatus_t status);
	void (*last_error)(char *text, size_t bytes);
	cudnnStatus_t (*create)(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out);
	cudnnStatus_t (*destroy)(cudnnBackendDescriptor_t descriptor);
	cudnnStatus_t (*finalize)(cudnnBackendDescriptor_t descriptor);
	cudnnStatus_t (*set)(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
			     cudnnBackendAttributeType_t type, int64_t count, const void *values);
	cudnnStatus_t (*get)(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
			     cudnnBackendAttributeType_t type, int64_t room, int64_t *count,
			     void *values);
	cudnnStatus_t (*execute)(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
				 cudnnBackendDescriptor_t arguments);
};

/* False with a line in why[bytes] when it is not installed. */
bool cudnn_open(struct cudnn *out, char *why, size_t bytes);
void cudnn_close(struct cudnn *api);

#endif
