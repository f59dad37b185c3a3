// SPDX-License-Identifier: Apache-2.0

// Package wire reads and writes documents of both of VCD's APIs. Its XML elements and JSON objects preserve unknown
// content. It also contains the XML documents that the types of the SDK do not write as the schema requires. It sends
// no requests and is independent of the purpose of documents.
package wire
