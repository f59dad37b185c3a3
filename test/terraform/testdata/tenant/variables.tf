# SPDX-License-Identifier: Apache-2.0

# Names of objects in a preset. Lists are empty or contain one name.

variable "url" {
  type = string
}

variable "files" {
  description = "Folder of an OVA, an ISO and a certificate, and of the files that are written"
  type        = string
}

variable "org" {
  type    = string
  default = "acme"
}

variable "vdc" {
  type    = string
  default = "acme-vdc"
}

variable "group" {
  description = "The data center group that the edge gateway belongs to"
  type        = list(string)
  default     = []
}

variable "gateway" {
  type    = list(string)
  default = ["acme-vdc-gateway"]
}

variable "ip_space" {
  description = "The IP Space that the addresses of the edge gateway come from"
  type        = list(string)
  default     = []
}

variable "sizing_policy" {
  type    = list(string)
  default = ["small"]
}

variable "full_clones" {
  description = "The VDC has no fast provisioning: disks of VMs can be larger than those of their template"
  type        = bool
  default     = false
}

variable "revision" {
  description = "Another number changes attributes of most resources"
  type        = number
  default     = 1
}

locals {
  gateways = toset(var.gateway)
  groups   = toset(var.group)
  spaces   = toset(var.ip_space)
  # Addresses of the load balancer and of NAT rules.
  addresses = {
    for gateway in var.gateway : gateway => {
      service = length(var.ip_space) > 0 ? vcd_ip_space_ip_allocation.service[var.ip_space[0]].ip_address : var.block[0]
      inbound = length(var.ip_space) > 0 ? vcd_ip_space_ip_allocation.inbound[var.ip_space[0]].ip_address : var.block[1]
    }
  }
  owners = {
    for gateway in var.gateway : gateway =>
    length(var.group) > 0 ? data.vcd_vdc_group.group[var.group[0]].id : data.vcd_org_vdc.vdc.id
  }
}

variable "block" {
  description = "Two addresses of the edge gateway's own block"
  type        = list(string)
  default     = ["203.0.113.20", "203.0.113.21"]
}
