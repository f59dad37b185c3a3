// SPDX-License-Identifier: Apache-2.0

// Package api defines the inputs and outputs of handlers: the request with its session and its cloud, the response,
// pages of lists, tasks in responses, and differences between API versions. It does not know any noun.
package api
