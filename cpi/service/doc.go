// Package service says what load balancer a Service asks for: the Service, its annotations and the Nodes make what package lb calls
// desired. It is pure: it talks to nobody.
package service
