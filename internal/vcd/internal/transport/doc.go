// SPDX-License-Identifier: Apache-2.0

// Package transport carries calls to one VCD installation: it queues them fairly, limits their rate, size and time, stops
// them while the site is silent, agrees on an API version, counts and logs, and turns answers that are no success into
// errors. It knows no credentials, and not what calls are for.
package transport
