// SPDX-License-Identifier: Apache-2.0

// Package transport sends requests to one VCD installation. It queues them fairly, limits their rate, size and time,
// and stops them while the site is silent. It negotiates an API version, counts and logs requests, and turns
// unsuccessful responses into errors. It is independent of credentials and of the purpose of requests.
package transport
