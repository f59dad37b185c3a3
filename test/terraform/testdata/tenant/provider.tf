# SPDX-License-Identifier: Apache-2.0

terraform {
  required_providers {
    vcd = {
      source = "vmware/vcd"
    }
  }
}

provider "vcd" {
  url                  = "${var.url}/api"
  org                  = var.org
  vdc                  = var.vdc
  user                 = "admin"
  password             = "password"
  auth_type            = "integrated"
  allow_unverified_ssl = true
}

# The system administrator creates the types of defined entities.
provider "vcd" {
  alias                = "system"
  url                  = "${var.url}/api"
  org                  = "System"
  user                 = "administrator"
  password             = "password"
  auth_type            = "integrated"
  allow_unverified_ssl = true
}
