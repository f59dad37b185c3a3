// SPDX-License-Identifier: Apache-2.0

// Package failure says what a failed call of VCD means: it reads error documents of both APIs, classifies calls without
// an answer, and keeps out of messages what is secret or differs each time. It knows what answers say, and neither how
// calls are made nor what they are for.
package failure
