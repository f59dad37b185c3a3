// SPDX-License-Identifier: Apache-2.0

// Package api is what handlers get and give: the request with its session and the cloud it asks about, the response,
// pages of lists, tasks as answers, and what the API versions differ in. It knows no noun.
package api
