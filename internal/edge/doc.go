// Package edge carries plans for load balancers out on the edge gateways of VMware Cloud Director: it observes what package lb plans
// with, runs the steps of plans one by one, and finds everything that belongs to a cluster. It knows nothing of Kubernetes.
//
// All who work on a gateway share one picture of it: lists, read when the picture is too old for somebody, and changed in memory by
// what is written here. Writes to a gateway take turns, as VCD makes them do; different gateways do not wait for each other.
package edge
