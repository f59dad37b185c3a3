// SPDX-License-Identifier: Apache-2.0

// Package wire reads and writes documents of both of VCD's APIs: XML elements and JSON objects that preserve unknown
// content, and the XML documents that the types of the SDK do not write as the schema requires. It sends no requests
// and does not know why a document is sent.
package wire
