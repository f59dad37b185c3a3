// SPDX-License-Identifier: Apache-2.0

// Package query answers for the query service: records of all kinds, filtered, sorted and page by page.
package query
