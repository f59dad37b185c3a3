// SPDX-License-Identifier: Apache-2.0

// Package login sends requests with credentials. It logs in with a password, an API token or the rotating token of a
// service account. It replaces tokens before they expire or when VCD has forgotten them, and rarely retries rejected
// credentials. It is independent of the purpose of requests.
package login
