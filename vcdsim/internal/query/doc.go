// SPDX-License-Identifier: Apache-2.0

// Package query handles the requests of the query service: records of all types, filtered, sorted and divided into
// pages. It does not change the objects that it lists.
package query
