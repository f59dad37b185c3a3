// SPDX-License-Identifier: Apache-2.0

// Package journal counts requests and keeps the most recent ones.
package journal
