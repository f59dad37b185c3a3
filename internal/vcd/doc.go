// Package vcd is the only code that talks to VMware Cloud Director. It offers shared sessions, look-ups, an
// inventory, vApps, VMs and tasks over an http.RoundTripper of its own that sits under go-vcloud-director.
// It never waits for a task, and it knows nothing of Kubernetes.
package vcd
